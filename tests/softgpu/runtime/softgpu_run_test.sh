#!/bin/sh
# usage: softgpu_run_test.sh SOFTGPU_RUN HOST_PROGRAM PROGRAM_OF_12: the launcher's options, statuses and messages, then
# unmodified programs. Exit status 77 (skipped) where libcuda.so.1 is not built.
run=$1
program=$2
program_of_12=$3
failures=0

expect() { # STATUS TEXT COMMAND...
  status=$1
  text=$2
  shift 2
  output=$("$@" 2>&1)
  actual=$?
  if [ "$actual" -ne "$status" ]; then
    echo "FAILED: $* gave $actual, not $status: $output"
    failures=$((failures + 1))
  fi
  case $output in
    *"$text"*) ;;
    *) echo "FAILED: $* does not say '$text': $output"; failures=$((failures + 1)) ;;
  esac
}

expect 0 "usage: softgpu-run" "$run" --help
expect 2 "no command to run" "$run"
expect 2 "unknown option '--frobnicate'" "$run" --frobnicate true
expect 2 "whole number" "$run" -n zero true
expect 2 "whole number" "$run" -n 0 true
expect 2 "needs a value" "$run" -n
expect 2 "cannot read the topology file" "$run" --topo /does/not/exist true
expect 2 "unknown version of CUDA '11'; there are runtimes of 12 and 13" "$run" --cuda 11 true
expect 2 "needs a value" "$run" --cuda
expect 2 "unknown schedule" "$run" --schedule fifo true
[ "$failures" -eq 0 ] || exit 1
"$run" --libdir > /dev/null 2>&1 || { echo "skipped: libcuda.so.1 of the software GPU is not built"; exit 77; }
expect 7 "" "$run" -n 2 -- sh -c 'exit 7'
expect 0 "5 random:3" "$run" --schedule random:3 -n 5 sh -c 'echo "$SOFTGPU_DEVICES $SOFTGPU_SCHEDULE"'
folder=$("$run" --libdir)
if grep -q '^preload=yes' "$run"; then
  preloads=$folder/libcudart.so.13:$folder/libcudart.so.12
  for version in 13 12; do
    if [ -e "$folder/libcupti.so.$version" ]; then preloads=$preloads:$folder/libcupti.so.$version; fi
  done
  expect 0 "only $preloads" "$run" sh -c 'echo "only $LD_PRELOAD"'
  # What is preloaded already stays in front, so that it finds the runtime's functions behind it.
  before="$folder/libcuda.so.1"
  expect 0 "CUDA 12, without a version 13: 2 devices, whole copies, no failures" "$run" -n 2 "$program_of_12"
  expect 0 "CUDA 12, without a version 12: 2 devices, whole copies, no failures" "$run" -n 2 --cuda 12 "$program_of_12"
  expect 0 "both $before:$preloads" env LD_PRELOAD="$before" "$run" sh -c 'echo "both $LD_PRELOAD"'
fi
expect 0 "none ." "$run" --no-preload env -u LD_PRELOAD "$run" --no-preload sh -c 'echo "none ${LD_PRELOAD:-.}"'
expect 0 "first $folder" "$run" sh -c 'echo "first $LD_LIBRARY_PATH"'
# Python gets the one folder that has nothing but the hook, with and without an option, in front of the program's own.
for option in --torch --; do
  [ "$option" = -- ] || [ -e "$folder/../libnccl.so.2" ] || continue
  expect 0 "has sitecustomize.py, then own" env PYTHONPATH=own "$run" "$option" sh -c '
    echo "has $(ls "${PYTHONPATH%:own}" | grep -v __pycache__), then ${PYTHONPATH##*:}"'
done
if [ -e "$folder/../libnccl.so.2" ]; then
  expect 0 "libnccl.so.2" "$run" --nccl --no-preload sh -c 'rest=${LD_LIBRARY_PATH#*:}; ls "${rest%%:*}/libnccl.so.2"'
fi
expect 0 "3 devices, 0 failures" "$run" -n 3 "$program"
expect 0 "CUDA 12, without a version 12: 1 devices, whole copies, no failures" "$run" -n 1 --no-preload "$program_of_12"
[ "$failures" -eq 0 ]
