#!/usr/bin/env bash
# All records, then the plots and the figures of the READMEs, in about so many minutes (25):
#
#   SAPHIRA_TEST_DATA=... bench/run_all.sh [MINUTES]
#
# PYTHON      the interpreter that has the package and its extra `bench` (default: .venv's, else python3)
# HF1_PYTHON  one that has tokenizers 1.0.0rc3 (default: an environment in bench/out is made)
# RECORDS     where records go (default: bench/records)
# ONLY, SKIP  names of steps, separated by spaces: bars stages sweep stages_pretok paths adversarial
#             pretokenizers memory plot readme
#
# A step that fails or runs out of time is reported at the end, and the others go on; the exit status is then 1.
set -uo pipefail
cd "$(dirname "$0")/.."

minutes="${1:-25}"
case "$minutes" in '' | *[!0-9]*) echo "usage: $0 [MINUTES]" >&2; exit 2 ;; esac
: "${SAPHIRA_TEST_DATA:?must name the folder with corpora/ and vocabs/}"
export SAPHIRA_TEST_DATA
unset SAPHIRA_ISA SAPHIRA_THREADS # the benchmarks choose these

python="${PYTHON:-}"
if [ -z "$python" ]; then
  if [ -x .venv/bin/python ]; then python=.venv/bin/python; else python=python3; fi
fi
records=(--records "${RECORDS:-bench/records}")
hf1=()
[ -n "${HF1_PYTHON:-}" ] && hf1=(--hf1-python "$HF1_PYTHON")

total=$((minutes * 60))
logs=bench/out/logs
mkdir -p "$logs"
SECONDS=0
summary=()
bad=0

# Seconds of the whole that are a step's: share N (of 1000).
share() { echo $((total * $1 / 1000)); }

# step NAME LIMIT COMMAND...: runs it unless it is left out, for at most LIMIT seconds and never much past the end.
step() {
  local name=$1 limit=$2 start=$SECONDS status
  shift 2
  case " ${ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
  case " ${SKIP:-} " in *" $name "*) summary+=("$name: left out"); return 0 ;; esac
  local left=$((total + 60 - SECONDS))
  [ "$limit" -gt "$left" ] && limit=$left
  [ "$limit" -lt 60 ] && limit=60
  printf '== %s (at most %s s)\n' "$name" "$limit"
  timeout -k 10 "$limit" "$@" >"$logs/$name.log" 2>&1
  status=$?
  grep -E '^(record:|bars:|dropped:|left out:|no figure:|a round)' "$logs/$name.log"
  if [ $status -eq 0 ]; then
    summary+=("$name: done in $((SECONDS - start)) s")
  else
    bad=1
    [ $status -eq 124 ] && echo "over its time" || tail -n 5 "$logs/$name.log"
    summary+=("$name: status $status after $((SECONDS - start)) s, see $logs/$name.log")
  fi
}

small=$([ "$minutes" -lt 15 ] && echo 1 || echo 0) # less text where there is less time
pick() { if [ "$small" = 1 ]; then echo "$2"; else echo "$1"; fi; }
load() { cut -d' ' -f1-3 /proc/loadavg 2>/dev/null; }

main() {
  printf 'about %s minutes; load now: %s\n' "$minutes" "$(load)"
  # Bars come first, while the machine is fresh. Their own budget ends them; the limit is for what hangs.
  step bars $(($(share 560) + 300)) \
    "$python" bench/compare.py --bars --budget-seconds "$(share 560)" "${hf1[@]}" "${records[@]}"
  step stages "$(share 160)" \
    "$python" bench/stages.py --budget-seconds "$(share 80)" --limit-mb "$(pick 32 8)" \
    --repeats "$(pick 5 3)" "${records[@]}"
  step sweep "$(share 300)" \
    "$python" bench/sweep.py --budget-seconds "$(share 130)" --mb "$(pick 64 16)" \
    --largest-mb "$(pick 1048.576 16.384)" --million-rows "$(pick 10 2)" "${records[@]}"
  step stages_pretok "$(share 160)" \
    "$python" bench/stages_pretok.py --limit-mb "$(pick 8 2)" --grow-mb "$(pick 16 4)" --repeats "$(pick 5 3)" \
    "${records[@]}"
  step paths "$(share 80)" \
    "$python" bench/compare.py english --base gigatoken --threads 1 --pairs 3 --record-as paths \
    --contenders gigatoken:source,gigatoken:separator,gigatoken:bytes,gigatoken:str,gigatoken:parquet \
    --budget-seconds "$(share 40)" "${records[@]}"
  step adversarial "$(share 120)" \
    "$python" bench/adversarial.py --repeats 1 --timeout 5 --peer-mb 0.3 --mb "$(pick 10 3)" \
    "${hf1[@]}" "${records[@]}"
  step pretokenizers "$(share 160)" "$python" bench/pretokenizers.py --pairs 3 "${records[@]}"
  step memory "$(share 120)" "$python" bench/memory.py --sizes "$(pick 32,128,512 16,64)" "${records[@]}"
  step plot 120 "$python" bench/plot.py "${records[@]}"
  step readme 60 "$python" bench/readme.py "${records[@]}"

  printf '\n%s s in all; load now: %s\n' "$SECONDS" "$(load)"
  printf '%s\n' "${summary[@]}"
  exit $bad
}

main # a function, so that a change of this file while it runs changes nothing
