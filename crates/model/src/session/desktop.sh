# A desktop on a screen that Xvnc draws, and noVNC's page shows by way of websockify. Runs in bash, in the session's sandbox.
#
# It is over when one of its parts is: who logs out of it has ended it, and without its screen it would answer and show nothing.
set -u

# What the machine has to have, and the package of Debian's in which it is.
missing=
need() { [ -e "$(command -v "$1" || echo "$1")" ] || missing="$missing $2"; }
need Xvnc tigervnc-standalone-server
need websockify websockify
need /usr/share/novnc/vnc.html novnc
need x-session-manager icewm
need xterm xterm
if [ -n "$missing" ]; then
    echo "this machine lacks what a desktop needs; an admin types: apt-get install --no-install-recommends$missing" >&2
    exit 127
fi

own=$(mktemp -d) || exit 1
mkfifo "$own/screen" || exit 1

# Its page: noVNC's own, which is asked to connect at once, below whatever path this session stands.
mkdir "$own/web" && ln -s /usr/share/novnc/* "$own/web/" || exit 1
cat >"$own/web/index.html" <<'PAGE'
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Remote desktop</title>
<script>
    const path = encodeURIComponent(new URL('websockify', location.href).pathname.slice(1));
    location.replace(`vnc.html?autoconnect=true&reconnect=true&resize=remote&path=${path}`);
</script>
PAGE

# IceWM as it comes moves all the time, which is sent to every page that shows it and looks like work: its own clock counts
# seconds, and it draws what the processor does. Who has settings of their own keeps them.
if [ ! -e "$HOME/.icewm" ] && [[ $(readlink -f "$(command -v x-session-manager)") == *icewm* ]]; then
    mkdir "$own/icewm"
    cat >"$own/icewm/prefoverride" <<'SETTINGS'
DesktopBackgroundColor="rgb:33/44/55"
TaskBarClockLeds=0
TaskBarShowCPUStatus=0
TaskBarShowMEMStatus=0
TaskBarShowNetStatus=0
TaskBarShowMailboxStatus=0
TerminalCommand="xterm -fa Monospace -fs 11"
TimeFormat="%H:%M"
SETTINGS
    echo 'Theme="CrystalBlue/default.theme"' >"$own/icewm/theme"
    printf '#!/bin/sh\nexec xterm -fa Monospace -fs 11\n' >"$own/icewm/startup"
    chmod +x "$own/icewm/startup"
    mv "$own/icewm" "$HOME/.icewm"
fi

# Its screen is behind a socket that only this session sees, and therefore behind no password. It says its number once it can be
# drawn on; if it cannot begin, it closes what its number would have come by.
Xvnc -displayfd 3 -geometry 1440x900 -depth 24 -desktop 'Remote desktop' -rfbport -1 -rfbunixpath "$own/vnc" \
    -SecurityTypes None -AlwaysShared -nolisten tcp 3>"$own/screen" &
if ! read -r number <"$own/screen"; then
    echo 'the screen could not be started' >&2
    exit 1
fi
export DISPLAY=":$number"
x-session-manager &
websockify --web "$own/web" --unix-target "$own/vnc" 127.0.0.1:6080 &
wait -n
