#!/bin/sh
# check.sh COMPILER INCLUDE_FOLDER: every program here but legal.cc must be refused by the compiler, with the
# text of its EXPECT line in an error inside that very file; legal.cc must compile. All the others are compiled
# as one translation unit, since reading the headers takes a hundred times longer than reading a program.
compiler=$1
includes=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags="-std=c++23 -fsyntax-only -fdiagnostics-plain-output -I$here"
for folder in core base labels config audit policy; do flags="$flags -I$includes/$folder"; done

if ! $compiler $flags "$here/legal.cc"; then
  echo "legal.cc must compile"
  exit 1
fi
for program in "$here"/*.cc; do
  [ "$program" = "$here/legal.cc" ] || echo "#include \"$program\"" >>"$work/all.cc"
done
LC_ALL=C $compiler $flags "$work/all.cc" 2>"$work/errors" && echo "everything compiles"
refused=0
failures=0
for program in "$here"/*.cc; do
  [ "$program" = "$here/legal.cc" ] && continue
  expected=$(sed -n 's/^\/\/ EXPECT: //p' "$program")
  if [ -n "$expected" ] && grep -F "$program:" "$work/errors" | grep -F " error: " | grep -qF "$expected"; then
    refused=$((refused + 1))
  else
    echo "$program is not refused for \"$expected\":"
    grep -F "$program:" "$work/errors"
    failures=$((failures + 1))
  fi
done
echo "$refused programs refused, $failures wrong"
[ "$failures" -eq 0 ] && [ "$refused" -ge 8 ]
