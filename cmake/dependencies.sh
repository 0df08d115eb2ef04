# Sourced by the scripts that build: makes sure that the Debian packages of the build are there.

solenoid_packages=(g++ cmake ninja-build libeigen3-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libfmt-dev
  libmuparser-dev libpng-dev zlib1g-dev libhdf5-dev libgtest-dev python3-venv)
# For several ranks; a first look does without.
solenoid_mpi_packages=(libopenmpi-dev openmpi-bin)

# install_dependencies [PACKAGE]...    those of the build, and these
install_dependencies() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "Not a Debian system, so nothing is installed. Needed are the equivalents of: ${solenoid_packages[*]} $*" >&2
    return 0
  fi
  local package missing=()
  for package in "${solenoid_packages[@]}" "$@"; do
    dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^.i' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    echo "Packages are missing. Install them, then run this again:" >&2
    echo "  sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 2
  fi
  echo "Installing ${missing[*]}"
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}"
}

# Makes a CUDA compiler known to CMake: the installed one or, so that CUDA code is compiled on machines without CUDA
# too, that of NVIDIA's Python packages. Without network the build does without.
provide_nvcc() {
  local folder=${XDG_CACHE_HOME:-$HOME/.cache}/solenoid/cuda-13.0 packages=(nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm
    nvidia-cuda-runtime nvidia-cuda-cccl) nvcc
  [ -n "${CUDACXX:-}" ] && return 0
  nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
  if [ -z "$nvcc" ]; then
    if [ "$(cat "$folder/complete" 2>/dev/null)" != "${packages[*]}" ]; then
      echo "Fetching a CUDA compiler into $folder"
      { python3 -m venv "$folder" && "$folder/bin/pip" -q install "${packages[@]/%/==13.0.*}" &&
        echo "${packages[*]}" >"$folder/complete"; } || { echo "No CUDA compiler: CUDA code is not compiled" >&2; return 0; }
    fi
    nvcc=$(find "$folder" -path '*/bin/nvcc' | head -n 1)
    [ -n "$nvcc" ] || { echo "No CUDA compiler in $folder: CUDA code is not compiled" >&2; return 0; }
    # nvcc and CMake look for these libraries by other names than the packages have.
    ln -sfn lib "${nvcc%/bin/nvcc}/lib64"
    ln -sfn libcudart.so.13 "${nvcc%/bin/nvcc}/lib/libcudart.so"
  fi
  export CUDACXX=$nvcc
}
