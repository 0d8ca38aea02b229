"""The text of `submit.sh`, with marks for what differs between bundles."""

TEMPLATE = r"""#!/usr/bin/env bash
# @TITLE@, started with spark-submit. Written by `gem-bundle build`.
#
#     ./submit.sh [spark-submit options] [-- pipeline options]
#     ./submit.sh --plan [-- pipeline options]
#
# It can be started from any folder; relative paths are relative to that folder. `./submit.sh --help` says
# what it takes.
set -euo pipefail

usage() {
    cat <<'END_OF_USAGE'
Usage: submit.sh [spark-submit options] [-- pipeline options]
       submit.sh --plan [-- pipeline options]

With --plan it says what a start does to the rows of each target, and starts nothing.

@USAGE@

Pipeline options:
  -p NAME=VALUE     give a parameter its value
  --profile NAME    take the parameters' values from a profile
  --pipeline NAME   start another pipeline of the bundle
  --target ID       run this target only
  --available-now   process what is there, then end
  --fresh ID        give this target new state, from where it ended
  --accept CODE     take a change on purpose that would stop the start: GB4xx, or GB4xx:NODE
  --keep-alive      end at once, and well, if the stream is running already
  --root DIR        what relative paths are relative to
  --report FILE     write the run's numbers to a JSON file
  --serve PORT      answer over HTTP meanwhile

Options of spark-submit that name files or packages are added to the bundle's own.
spark-submit is $SPARK_HOME's, else the PATH's, else the one of Python's pyspark.
Python is $PYSPARK_PYTHON, else python3; $PYSPARK_DRIVER_PYTHON on the driver, if it is set.

Examples:
  ./submit.sh --master 'local[2]' -- --available-now
  ./submit.sh --master spark://host:7077
  ./submit.sh --master yarn --deploy-mode cluster
END_OF_USAGE
}

fail() {
    printf 'submit.sh: %s\n' "$1" >&2
    printf '%s\n' "${2:-./submit.sh --help says what it takes.}" >&2
    exit "${3:-2}"
}

# The bundle's folder, wherever this is called from and by whatever link.
self=${BASH_SOURCE[0]}
while [ -h "$self" ]; do
    link=$(readlink "$self")
    case $link in
        /*) self=$link ;;
        *) self=$(dirname -- "$self")/$link ;;
    esac
done
here=$(cd -- "$(dirname -- "$self")" && pwd -P)

archive=@ARCHIVE@
deps=@DEPS@
jars=(@JARS@)
packages=@PACKAGES@
master=@MASTER@
deploy_mode=@DEPLOY_MODE@
options=(@OPTIONS@)
settings=(@SETTINGS@)
values=(@VALUES@)
arguments=(@ARGUMENTS@)

plan='' remote='' more_jars='' more_packages='' more_py_files='' more_archives=''
given=() pipeline=()

take() {
    case $1 in
        --master) master=$2 ;;
        --deploy-mode) deploy_mode=$2 ;;
        --remote) remote=$1 ;;
        --jars) more_jars+=,$2 ;;
        --packages) more_packages+=,$2 ;;
        --py-files) more_py_files+=,$2 ;;
        --archives) more_archives+=,$2 ;;
        *) given+=("$1" "$2") ;;
    esac
}

while [ $# -gt 0 ]; do
    case $1 in
        -h | --help)
            usage
            exit 0
            ;;
        --)
            shift
            pipeline=("$@")
            break
            ;;
        --plan)
            plan=yes
            shift
            ;;
        -v | --verbose | --supervise)
            given+=("$1")
            shift
            ;;
        -p | --profile | --pipeline | --target | --available-now | --fresh | --accept | --keep-alive | \
            --root | --report | --serve)
            fail "$1 is a pipeline option: these come after --" "For example: ./submit.sh -- $1 ${2:-}"
            ;;
        --*=*)
            take "${1%%=*}" "${1#*=}"
            shift
            ;;
        -*)
            [ $# -gt 1 ] || fail "$1 needs a value"
            take "$1" "$2"
            shift 2
            ;;
        *) fail "$1 is not an option: what is for the pipeline comes after --" ;;
    esac
done

if [ -z "$plan" ] && [ -n "${SPARK_REMOTE:-}$remote" ]; then
    fail "error[GB669]: spark-submit starts a Spark, and ${remote:-SPARK_REMOTE} names another one" \
        "Leave that out; or set SPARK_REMOTE and run there, by Python alone: python3 $here/main.py" 1
fi
case $deploy_mode:$master in
    cluster:spark:* | cluster:local*)
        fail "Spark has no cluster deploy mode for Python with --master $master" \
            "Leave out --deploy-mode cluster, and start this on a machine near the cluster that stays up."
        ;;
esac
case $here in
    *[,*?{}]* | *[[]* | *[]]*)
        fail "the folder's name has one of , * ? [ ] { }, which mean something to Spark: $here" \
            "Rename the folder." 1
        ;;
esac
for file in main.py "$archive" ${deps:+"$deps"} ${jars[@]+"${jars[@]}"}; do
    [ -f "$here/$file" ] || fail "$file is missing in $here" "The bundle isn't complete: copy it again." 1
done

# A URL, since a path with a blank in it would lose what stands behind its #.
address() {
    local path=$here/$1
    path=${path//%/%25}
    path=${path// /%20}
    path=${path//#/%23}
    printf 'file://%s' "$path"
}

export PYSPARK_PYTHON=${PYSPARK_PYTHON:-python3}
if [ -n "$plan" ]; then
    submit=''
elif [ -n "${SPARK_HOME:-}" ]; then
    submit=$SPARK_HOME/bin/spark-submit
    [ -x "$submit" ] ||
        fail "SPARK_HOME is $SPARK_HOME, which has no bin/spark-submit" "Set it right, or unset it." 1
elif ! submit=$(command -v spark-submit); then
    submit=$("${PYSPARK_DRIVER_PYTHON:-$PYSPARK_PYTHON}" -c '
from importlib.util import find_spec
from pathlib import Path
found = find_spec("pyspark")
print(Path(found.origin).parent / "bin" / "spark-submit" if found and found.origin else "")
') || submit=''
    [ -x "$submit" ] ||
        fail "there is no spark-submit" \
            "Set SPARK_HOME, or put spark-submit on the PATH, or pip install pyspark." 1
fi

command=("$submit")
[ -z "$master" ] || command+=(--master "$master")
[ -z "$deploy_mode" ] || command+=(--deploy-mode "$deploy_mode")
command+=(${options[@]+"${options[@]}"})
for setting in ${settings[@]+"${settings[@]}"}; do
    command+=(--conf "$setting")
done
command+=(--py-files "$(address "$archive")$more_py_files")
if [ -n "$deps" ]; then
    more_archives=,$(address "$deps")#deps$more_archives
fi
[ -z "$more_archives" ] || command+=(--archives "${more_archives#,}")
own_jars=''
for jar in ${jars[@]+"${jars[@]}"}; do
    own_jars+=,$(address "$jar")
done
own_jars+=$more_jars
[ -z "$own_jars" ] || command+=(--jars "${own_jars#,}")
packages+=$more_packages
[ -z "$packages" ] || command+=(--packages "${packages#,}")
command+=(${given[@]+"${given[@]}"} "$here/main.py" ${arguments[@]+"${arguments[@]}"})
if [ -n "$plan" ]; then
    # No Spark is started for it.
    command=("${PYSPARK_DRIVER_PYTHON:-$PYSPARK_PYTHON}" "$here/main.py" --plan)
    command+=(${arguments[@]+"${arguments[@]}"})
fi

# A parameter is given once: what the command line says takes the place of what the job says.
for value in ${values[@]+"${values[@]}"}; do
    replaced=''
    for word in ${pipeline[@]+"${pipeline[@]}"}; do
        case $word in
            "${value%%=*}"=* | -p"${value%%=*}"=* | --parameter="${value%%=*}"=*) replaced=yes ;;
        esac
    done
    [ -n "$replaced" ] || command+=(-p "$value")
done
command+=(${pipeline[@]+"${pipeline[@]}"})

exec "${command[@]}"
"""
