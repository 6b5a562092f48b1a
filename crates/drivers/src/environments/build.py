#!/usr/bin/python3
"""Makes an environment, in the sandbox of whoever wants it. What it says is read by people while they wait."""
import json, os, pathlib, re, shutil, subprocess, sys, venv

recipe = json.loads(os.environ["BERTH_RECIPE"])
here = pathlib.Path(recipe["path"])
base = pathlib.Path(recipe["base"]) if recipe["base"] else None
python = here / "bin" / "python"
packages = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
# `scripts/lock-environments` resolves for this version and all newer ones.
OLDEST_LOCKED = (3, 11)


def say(words):
    print(f"berth: {words}", flush=True)


def empty():
    """Whoever made it before was cut off half-way."""
    for one in here.iterdir():
        shutil.rmtree(one) if one.is_dir() and not one.is_symlink() else one.unlink()


def stand_on_base():
    """What the base has is found after what is here, its programs run with this interpreter, its files are seen here."""
    pth = here / packages / "berth-base.pth"
    pth.write_text(f"import site; site.addsitedir({str(base / packages)!r})\n")
    for program in sorted((base / "bin").iterdir()):
        mine = here / "bin" / program.name
        if mine.exists() or program.is_symlink() or not program.is_file():
            continue
        text = program.read_bytes()
        if text.startswith(b"#!" + bytes(base / "bin" / "python")):
            mine.write_bytes(text.replace(bytes(base / "bin"), bytes(here / "bin"), 1))
            mine.chmod(0o755)
    for part in ("share", "etc"):
        for folder, _, names in os.walk(base / part):
            mine = here / pathlib.Path(folder).relative_to(base)
            mine.mkdir(parents=True, exist_ok=True)
            for name in names:
                if not (mine / name).exists():
                    (mine / name).symlink_to(pathlib.Path(folder) / name)


def fail(words, status=1):
    say(words)
    sys.exit(status if status > 0 else 1)


def what_to_install():
    """What a lock file names is installed from exactly the files that it knows, and nothing beside that."""
    if recipe["lock"]:
        if sys.version_info < OLDEST_LOCKED:
            fail("it needs Python 3.11 or newer, and this machine's python3 is older: install a newer one")
        return ["--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirement", recipe["lock"]]
    wanted = recipe["packages"]
    if not base and not any(line.lower().startswith("ipykernel") for line in wanted):
        wanted = [*wanted, "ipykernel"]
    return wanted and ["--", *wanted]


def install(what):
    command = [str(python), "-m", "pip", "install", "--no-input", "--no-cache-dir", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", *what]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as pip:
        complaints = []
        for line in pip.stderr:
            print(line, end="", file=sys.stderr, flush=True)
            complaints.append(line)
    if pip.returncode != 0:
        fail(why_not("".join(complaints)), pip.returncode)


def why_not(complaints):
    """In pip's words a list of packages follows, each with the hashes that were expected and the one that it has."""
    _, _, mismatch = complaints.partition("DO NOT MATCH THE HASHES")
    changed = re.findall(r"^    (\S+) from ", mismatch, re.MULTILINE)
    if changed:
        return (
            f"the index has another file for {', '.join(changed)} than the lock file names, so nothing was installed: "
            "take the packages from an index that you trust (--index), or ask who runs this one why the file changed"
        )
    return "the packages could not be installed"


def write_kernel():
    """So that notebooks find it, by a folder that is named to them. Its own `python3` kernel stays as it is."""
    spec = {
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": recipe["title"],
        "language": "python",
        "metadata": {"debugger": True},
    }
    folder = here / "berth" / "kernels" / recipe["kernel"]
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(spec, indent=1) + "\n")


os.umask(0o022)
empty()
say("making the folder")
venv.EnvBuilder(with_pip=base is None, symlinks=True).create(here)
if base:
    stand_on_base()
what = what_to_install()
if what:
    say("collecting " + " ".join(recipe["packages"]))
    install(what)
write_kernel()
(here / "berth" / "python").write_text(".".join(map(str, sys.version_info[:3])) + "\n")
say("done")
