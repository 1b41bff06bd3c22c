#!/bin/sh
# What cibuildwheel needs in a manylinux image (AlmaLinux 8 and later) before it builds wheels.
set -eu
dnf install -y epel-release
dnf install -y ninja-build fmt-devel cli11-devel json-devel hdf5-devel
git clone --depth 1 --branch v3.3.0 https://github.com/marzer/tomlplusplus /tmp/tomlplusplus
cp -r /tmp/tomlplusplus/include/toml++ /usr/local/include/
