#!/usr/bin/python3
"""Makes an environment, in the sandbox of whoever wants it. What it says is read by people while they wait."""
import json, os, pathlib, shutil, subprocess, sys, venv

recipe = json.loads(os.environ["BERTH_RECIPE"])
here = pathlib.Path(recipe["path"])
base = pathlib.Path(recipe["base"]) if recipe["base"] else None
python = here / "bin" / "python"
packages = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


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


def install(wanted):
    command = [str(python), "-m", "pip", "install", "--no-input", "--no-cache-dir", "--disable-pip-version-check"]
    done = subprocess.run([*command, "--progress-bar", "off", "--", *wanted])
    if done.returncode != 0:
        say("the packages could not be installed")
        sys.exit(done.returncode if done.returncode > 0 else 1)


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
wanted = recipe["packages"]
if not base and not any(line.lower().startswith("ipykernel") for line in wanted):
    wanted = [*wanted, "ipykernel"]
if wanted:
    say("collecting " + " ".join(wanted))
    install(wanted)
write_kernel()
(here / "berth" / "python").write_text(".".join(map(str, sys.version_info[:3])) + "\n")
say("done")
