#!/usr/bin/env bash
# One run on a machine with a GPU, of at most nine minutes: is the CUDA path exact there, and how fast is it?
#
#   bench/device_check.sh [--device cuda|host] [--out FOLDER] [--quick]
#
# Needs this checkout, a C compiler or a wheel of this project, and slices of the corpora under SAPHIRA_TEST_DATA
# (corpora/*.parquet, 60 MB together are plenty). WHEELS names a folder of wheels for what the machine's Python
# lacks (numpy, pyarrow, cffi, cupy, this project itself, gigatoken to compare with): they are installed into a
# folder of their own, and nothing is fetched from anywhere. PYTHON names the Python, python3 by default.
# --device host dry-runs all of it on the host executor, with tiny sizes. Every part has its own time; one that
# fails doesn't stop the others. FOLDER (OUT, or bench/out/device) gets a file a part and summary.txt, eight at
# most. Exit status: 0 if every part that could run passed.
set -uo pipefail
cd "$(dirname "$0")/.."
device=cuda out="${OUT:-bench/out/device}" quick=()
while [ $# -gt 0 ]; do
  case "$1" in
    --device) device="$2"; shift 2 ;;
    --out) out="$2"; shift 2 ;;
    --quick) quick=(--quick); shift ;;
    *) echo "device_check.sh: $1 is no option (see its head)" >&2; exit 2 ;;
  esac
done
[ "$device" = host ] && quick=(--quick)
mkdir -p "$out"
python="${PYTHON:-python3}"
begun=$SECONDS

if [ -n "${WHEELS:-}" ]; then
  site="$(mktemp -d)"
  "$python" -m pip install -q --no-index --no-deps --no-compile --upgrade --target "$site" "$WHEELS"/*.whl || exit 2
  export PYTHONPATH="$site${PYTHONPATH:+:$PYTHONPATH}"
fi
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
# The checkout's own Python files are what runs; its core is the one beside them, or that of an installed wheel.
if ! "$python" -c 'import saphira_gpu' 2>/dev/null; then
  core=$("$python" - <<'PY'
import importlib.util, pathlib, sys
here = str(pathlib.Path.cwd())
sys.path = [path for path in sys.path if path not in ("", ".", here)]
spec = importlib.util.find_spec("saphira_gpu")
found = sorted(pathlib.Path(spec.origin).parent.glob("_core*.so")) if spec else []
print(found[0] if found else "")
PY
  )
  if [ -n "$core" ]; then cp "$core" saphira_gpu/
  else "$python" -m pip install -q --no-build-isolation -e . || { echo "the core can't be built here"; exit 2; }
  fi
fi

status=0
: >"$out/summary.txt"
note() { printf '%s\n' "$*" | tee -a "$out/summary.txt"; }
note "device $device, $(date -u +%Y-%m-%dT%H:%MZ)"
part() { # name, seconds
  local name="$1" limit="$2" start=$SECONDS
  timeout -k 10 "$limit" "$python" bench/_device_check.py "$name" --device "$device" --out "$out" "${quick[@]}" \
    >"$out/.log" 2>&1
  local code=$? word
  case $code in 0) word=passed ;; 3) word="not checked" ;; 124 | 137) word="ran out of time" ;; *) word=FAILED ;; esac
  [ $code -eq 0 ] || [ $code -eq 3 ] || status=1
  note "== $name: $word, $((SECONDS - start)) s"
  tail -n 40 "$out/.log" | tee -a "$out/summary.txt"
  rm -f "$out/.log"
}
part exact 150
part kernels 90
part sanitizer 90
part transfer 20
part stages 60
part speed 110
note "$((SECONDS - begun)) s in all, exit status $status"
exit $status
