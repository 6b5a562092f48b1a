"""A server that has begun before anybody asked for it.

It has read an app's code and waits: as a user that nobody is, with no home, no token and no network. For each person who
starts that app, a copy of it goes into their sandbox, becomes them, and from then on is the app. It has one thread; a
process with several can neither be copied whole nor change its namespaces.

    warm.py FILTER... -- MODULE...

Each filter is a file with a program for the kernel that refuses system calls to every copy. Keepers come by the socket that is its standard input. It says `ready` on its standard output, and ends when nobody
listens there any more.
"""

import array
import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import shutil
import signal
import socket
import sys
import tempfile

# What a keeper hands over after the way to its sandbox, in this order.
NAMESPACES = ("user", "net", "mnt", "pid", "ipc", "uts", "cgroup")
# What is worked out from the home while modules are read is found by this, and put right in each copy.
NOBODYS_HOME = os.environ["HOME"]
# How long a keeper may take to say what it wants.
PATIENCE = 5

NS_GET_USERNS = 0xB701
PR_SET_DUMPABLE, PR_SET_NAME, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 4, 15, 22, 24, 38, 47
SECCOMP_MODE_FILTER, INSTRUCTION_BYTES = 2, 8
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


# They are read while this process still sees their files.
filters = []


def call(name, *arguments):
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def receive(connection, most):
    """What is handed over, and the line that comes after it."""
    room = socket.CMSG_SPACE(most * array.array("i").itemsize)
    first, extra, _, _ = connection.recvmsg(1, room)
    handed = array.array("i")
    for level, kind, data in extra:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            handed.frombytes(data[: len(data) - len(data) % handed.itemsize])
    for descriptor in handed:
        os.set_inheritable(descriptor, False)
    with connection.makefile("rb") as file:
        return list(handed), file.readline()


def find_homes():
    """Whatever keeps a path in the home: whose it is, its name there, and the path."""
    found = []
    for owner in gc.get_objects():
        for value in gc.get_referents(owner):
            if isinstance(value, str) and value.startswith(NOBODYS_HOME):
                names = owner if isinstance(owner, dict) else getattr(owner, "__dict__", {})
                found += [(owner, name, value) for name in list(names) if names[name] is value]
    return found


def move_in(homes):
    for owner, name, value in homes:
        value = os.environ["HOME"] + value.removeprefix(NOBODYS_HOME)
        if isinstance(owner, dict):
            owner[name] = value
        else:
            setattr(owner, name, value)
    tempfile.tempdir = None


def enter(user, spaces):
    """Becomes the person of the sandbox and goes in. Its network belongs to a namespace above the person's own, which
    is entered first, because from there everything else may be; the person's own comes last."""
    os.setgroups([user])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    above = fcntl.ioctl(spaces["net"], NS_GET_USERNS)
    inner = [spaces[name] for name in NAMESPACES[1:]]
    for space in (above, *inner, spaces["user"]):
        call("setns", space, 0)
        os.close(space)


def give_up_privileges():
    call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    call("capset", (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)())
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for instructions in filters:
        buffer = ctypes.create_string_buffer(instructions, len(instructions))
        program = Filter(len(instructions) // INSTRUCTION_BYTES, ctypes.addressof(buffer))
        call("prctl", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0)


def watch(app, inside):
    """Tells the first process of the sandbox how the app ended: it is not its parent, and cannot know otherwise."""
    _, status = os.waitpid(app, 0)
    code = os.waitstatus_to_exitcode(status)
    fate = {"signalled": -code} if code < 0 else {"exited": code}
    try:
        inside.sendall(json.dumps(fate).encode() + b"\n")
    finally:
        os._exit(0)


def become(keeper, user, handed):
    """In a copy: goes into the sandbox, and comes back as the app's process with the command that it is to be."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    inside = socket.socket(fileno=handed[0])
    keeper.settimeout(None)
    # It does nothing before it is counted to the run, whose limits hold for it.
    if keeper.recv(1) != b"g":
        os._exit(1)
    keeper.close()
    enter(user, dict(zip(NAMESPACES, handed[1:])))
    # Only what is started from here on is in the sandbox's own list of processes.
    app = os.fork()
    give_up_privileges()
    if app:
        watch(app, inside)
    call("prctl", PR_SET_DUMPABLE, 1, 0, 0, 0)
    os.setsid()
    (output, errors), request = receive(inside, 2)
    request = json.loads(request)
    nothing = os.open("/dev/null", os.O_RDONLY)
    for old, new in ((nothing, 0), (output, 1), (errors, 2)):
        os.dup2(old, new)
        os.close(old)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    inside.sendall(b"%d\n" % os.getpid())
    inside.close()
    return request["command"]


def wait():
    """Makes a copy for every keeper that comes. Only a copy comes back, with its command."""
    listener = socket.socket(fileno=0)
    # Nobody waits for copies to end; they live as long as their sandboxes.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    events = select.poll()
    events.register(listener, select.POLLIN)
    events.register(1, 0)
    while True:
        if any(source == 1 for source, _ in events.poll()):
            os._exit(0)
        keeper, _ = listener.accept()
        keeper.settimeout(PATIENCE)
        handed = []
        try:
            handed, user = receive(keeper, 1 + len(NAMESPACES))
            copy = os.fork()
            if not copy:
                listener.detach()
                return become(keeper, int(user), handed)
            keeper.sendall(b"%d\n" % copy)
        except OSError as error:
            print(f"a keeper went away: {error}", file=sys.stderr)
        keeper.close()
        for descriptor in handed:
            os.close(descriptor)


def is_script(program):
    """Whether this very Python would run it."""
    if os.path.dirname(program) != os.path.join(sys.prefix, "bin"):
        return False
    with open(program, "rb") as file:
        return file.readline().strip() == b"#!" + sys.executable.encode()


def run(command):
    program = shutil.which(command[0]) or command[0]
    # Who says how Python itself is to run means it from its first line on.
    if not is_script(program) or any(name.startswith("PYTHON") for name in os.environ):
        os.execvp(program, command)
    libc.prctl(PR_SET_NAME, os.path.basename(program).encode()[:15], 0, 0, 0)
    sys.argv = [program, *command[1:]]
    runpy.run_path(program, run_name="__main__")


def main():
    files, modules = sys.argv[1 : sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1 :]
    for file in files:
        with open(file, "rb") as opened:
            filters.append(opened.read())
    for module in modules:
        importlib.import_module(module)
    homes = find_homes()
    # What is there by now is never looked at again, and so stays one copy in memory.
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    command = wait()
    move_in(homes)
    run(command)


main()
