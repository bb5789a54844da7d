# Sets $python to an interpreter from 3.11 to 3.13; sourced by scripts/demo and scripts/test.
# A name on the PATH may be a shim without a Python behind it, so each one is tried by running it.
python=
for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' \
        >/dev/null 2>&1; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    echo "Roadstead needs Python 3.11, 3.12 or 3.13 and found none (set PYTHON to name one)." >&2
    exit 1
fi
