#!/bin/sh
# The build tree's short way to the software GPU: see `softgpu-run --help`.
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/src/softgpu/softgpu-run" "$@"
