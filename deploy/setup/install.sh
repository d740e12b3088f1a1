#!/usr/bin/env bash
# Installs the locked requirements into a virtual environment. Repeating it brings the environment to the lock.
# Usage: install.sh VENV LOCK [PYTHON]
set -euo pipefail
venv=${1:?the virtual environment}
lock=${2:?the lock file}
shift 2

fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }

# A name on PATH may be a stand-in that runs nothing, so each is tried.
for python in "${@:-python3}" python3.13 python3.12 python3.11; do
    fits "$python" && break
    if [ $# -gt 0 ]; then break; fi
done
if ! fits "$python"; then
    echo "Yardmaster needs Python 3.11, 3.12 or 3.13, and ${1:-no python3 here} is none of them." >&2
    echo "Install one, or name it: make setup PYTHON=/path/to/python3.12" >&2
    exit 1
fi
if [ ! -x "$venv/bin/python" ]; then
    "$python" -m venv "$venv" || { echo "Python's venv module is missing: install it (Debian: python3-venv)." >&2; exit 1; }
fi
echo "Installing $lock into $venv (a few minutes the first time) ..."
"$venv/bin/python" "$(dirname "${BASH_SOURCE[0]}")/packages.py" "$lock" requirements.txt
[ "$lock" = requirements.txt ] || exit 0
cat > "$venv/bin/yardmaster" <<'LAUNCHER'
#!/usr/bin/env bash
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
PYTHONPATH="$here/../../platform${PYTHONPATH:+:$PYTHONPATH}" exec "$here/python" -m yardmaster_client "$@"
LAUNCHER
chmod +x "$venv/bin/yardmaster"
