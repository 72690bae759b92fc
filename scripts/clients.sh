# shellcheck shell=bash disable=SC2154  # variables of scripts/check
# The stages of `scripts/check clients`: programs of others on Tarn. Their
# packages are fetched, some 400 MB; what cannot be had is skipped by name.

readonly clients=$PWD/build/clients

# environment NAME PACKAGE...: an environment of Python with these packages of
# PyPI, kept for the next run. Prints its interpreter.
environment() {
  local python=$clients/$1/bin/python
  if [[ ! -x $python ]]; then
    python3 -m venv "$clients/$1" >&2 || return
  fi
  "$python" -m pip install --quiet "${@:2}" >&2 || return
  echo "$python"
}

# with NAME STAGE PACKAGE... -- COMMAND...: a stage that runs COMMAND with
# |python| in such an environment.
with_packages() {
  local name=$1 stage=$2 packages=() python
  shift 2
  while [[ $1 != -- ]]; do
    packages+=("$1")
    shift
  done
  shift
  if python=$(environment "$name" "${packages[@]}" 2>"$logs/$name.log"); then
    quiet "$stage" env TARN_CLIENT_PYTHON="$python" "$@"
  else
    skip "$stage" "pip gave no ${packages[*]}: $(tail -n 1 "$logs/$name.log")"
  fi
}

# PaddlePaddle opens all plug-ins of a folder.
run_paddle() {
  local root=$clients/devices kinds=(cpu sim)
  rm -rf "$root"
  mkdir -p "$root"
  if [[ -f build/plugins/tarn_opencl.so ]] &&
    build/tarn devices -o csv | grep -q '^opencl:0,'; then
    kinds+=(opencl)
  else
    echo 'SKIPPED: PaddlePaddle, opencl: no plug-in, or no driver'
  fi
  local kind
  for kind in "${kinds[@]}"; do
    cp "build/plugins/tarn_$kind.so" "$root"
  done
  CUSTOM_DEVICE_ROOT=$root GLOG_minloglevel=3 TARN_SIM_CAPACITY=512M \
    "$TARN_CLIENT_PYTHON" tests/clients/paddle_devices.py "${kinds[@]}"
}

run_safetensors() {
  PYTHONPATH=build/python "$TARN_CLIENT_PYTHON" tests/clients/safetensors_files.py
}

clients_stages() {
  scripts/packages programs
  export -f run_paddle run_safetensors
  export clients
  with_packages paddle 'PaddlePaddle' paddlepaddle -- bash -c run_paddle
  with_packages safetensors 'safetensors' safetensors numpy -- \
    bash -c run_safetensors
  # Debian's PyTorch and NumPy: under tarn preload, and by DLPack both ways.
  tests 'PyTorch and NumPy' clients
}
