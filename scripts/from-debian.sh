# shellcheck shell=bash
# For the scripts that make sure of the programs of a server which tests start: sourced by them, it starts none itself.
#
# from_debian NAME PACKAGE SERVICE HOW prints what find_programs has found, as its last line. Where that finds something it
# does nothing else; where it may, it installs Debian's PACKAGE; elsewhere it says HOW to install, and ends with 1.
# find_programs is the script's own: it prints where the programs are, or which, and fails where there are none.
set -euo pipefail

from_debian() {
    local name=$1 package=$2 service=$3 how=$4 found root log
    log=${TMPDIR:-/tmp}/gem-bundle-$package.$(id -u).log

    say() { echo "$name: $*"; }
    give_up() {
        echo "$name: $*" >&2
        exit 1
    }
    end_if_there() {
        if found=$(find_programs); then
            say "it is there, nothing to do."
            echo "$found"
            exit 0
        fi
    }

    end_if_there
    if [ "$(id -u)" = 0 ]; then
        root=()
    elif sudo -n true 2>/dev/null; then
        root=(sudo -n)
    else
        give_up "it isn't there, and installing it takes root: $how."
    fi
    command -v apt-get >/dev/null || give_up "it isn't there, and no apt-get to install it with: $how."

    # Test runs start in parallel: one of them installs, the others wait here for it.
    exec 9>"${TMPDIR:-/tmp}/gem-bundle-$package.$(id -u).lock"
    flock 9
    end_if_there
    say "installing it ..."
    "$(dirname "${BASH_SOURCE[0]}")/debian-packages" "$package" >"$log" 2>&1 9>&- ||
        give_up "apt-get could not install $package, see $log; or $how."
    # Where systemd runs, the package has it start a server on its usual port, now and with the machine.
    if [ -d /run/systemd/system ]; then
        "${root[@]}" systemctl --quiet disable --now "$service" >>"$log" 2>&1 9>&- ||
            say "could not stop the server that the package has started, see $log."
    fi
    found=$(find_programs) || give_up "apt-get has installed $package, and what is there doesn't do: $how."
    say "installed."
    echo "$found"
}
