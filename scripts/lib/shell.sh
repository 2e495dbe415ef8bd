# shell.sh - what check, quickstart and the benchmarks share.  Sourced, with
# $top the source directory (it may hold blanks).  POSIX sh.

# Dovecot lies in /usr/sbin, which a user's PATH does not name on Debian.
case :$PATH: in
*:/usr/sbin:*) ;;
*) PATH=$PATH:/usr/sbin:/sbin ;;
esac

say() {
	printf '%s\n' "$*"
}

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$(printf '\033[1m') green=$(printf '\033[32m')
	red=$(printf '\033[31m') plain=$(printf '\033[0m')
else
	bold='' green='' red='' plain=''
fi

step() {
	printf '\n%s==> %s%s\n' "$bold" "$*" "$plain"
}

fail() {
	printf '%s%s: %s%s\n' "$red" "${0##*/}" "$*" "$plain" >&2
	exit 1
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1; then
		sudo "$@"
	else
		fail "'$*' needs root, and there is no sudo"
	fi
}

is_installed() {
	case $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) in
	installed) return 0 ;;
	esac
	# pkg-config is called pkgconf in newer releases, and so on.
	return 1
}

# packages PURPOSE... - their names
packages() {
	for purpose; do
		awk -F '\t' -v p="$purpose" '$1 == p { print $2 }' \
		    "$top/scripts/lib/packages"
	done
}

# install_missing PURPOSE... - needs the network only when something is
# missing.  Debian starts a server as soon as it is installed, Dovecot on
# every address of the machine: we forbid that while apt runs, and keep what
# we installed from starting at boot.  Our servers are started by hand.
install_missing() {
	command -v dpkg-query >/dev/null 2>&1 ||
		fail "this is made for Debian; install by hand: $(
		    packages "$@" | tr '\n' ' ')"
	missing=
	for package in $(packages "$@"); do
		is_installed "$package" || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	say "installing, which takes some minutes:$missing"
	policy=/usr/sbin/policy-rc.d
	made_policy=
	apt_out=$(mktemp) || fail "no temporary file"
	if [ ! -e $policy ]; then
		made_policy=yes
		# dash runs the EXIT trap on a signal only if that is trapped.
		trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
		trap 'exit 1' HUP INT TERM
		printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
		as_root chmod 755 $policy
	fi
	# $missing is a list of words.
	as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq ||
		say "apt-get update failed; trying with what apt knows"
	# A fresh machine is often busy with its own upgrades: wait for these.
	# shellcheck disable=SC2086
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	    -o DPkg::Lock::Timeout=600 --no-install-recommends $missing \
	    </dev/null >"$apt_out" 2>&1
	rc=$?
	[ $rc = 0 ] || cat "$apt_out" >&2
	rm -f "$apt_out"
	if [ -n "$made_policy" ]; then
		as_root rm -f $policy
		trap - EXIT HUP INT TERM
	fi
	[ $rc = 0 ] || fail "apt-get could not install:$missing"
	command -v systemctl >/dev/null 2>&1 || return 0
	for package in $missing; do
		case $package in
		postgresql) unit=postgresql ;;
		redis-server) unit=redis-server ;;
		dovecot-core) unit="dovecot.service dovecot.socket" ;;
		*) continue ;;
		esac
		# shellcheck disable=SC2086
		as_root systemctl disable --quiet $unit >/dev/null 2>&1
	done
	return 0
}

# work_area NAME - a directory without blanks, ours alone, kept between runs,
# one per source directory.  Prints its path.
work_area() {
	tmp=/tmp
	case ${TMPDIR:-} in
	'' | *[!A-Za-z0-9/._-]*) ;;
	*) tmp=$TMPDIR ;;
	esac
	sum=$(printf '%s' "$top" | cksum | cut -d' ' -f1)
	area=$tmp/mailherd-$1-$(id -u)-$sum
	mkdir -p "$area" 2>/dev/null
	# Anybody could have made it before us.
	if [ ! -O "$area" ] || [ -L "$area" ]; then
		area=$(mktemp -d "$tmp/mailherd-$1.XXXXXX") ||
			fail "no directory in $tmp"
	fi
	chmod 755 "$area"
	printf '%s\n' "$area"
}

# copy_sources DIR - the sources as they are now, without what was built.
# Builds happen in the copy's neighbour: autotools dislike blanks in a path,
# and a check run by root must leave nothing of root's in a user's checkout.
copy_sources() {
	mkdir -p "$1/m4" || fail "cannot write $1"
	list=$1.list
	if git -c safe.directory='*' -C "$top" rev-parse --git-dir \
	    >/dev/null 2>&1 && [ -e "$top/.git" ]; then
		(cd "$top" && git -c safe.directory='*' ls-files -z --cached \
		    --others --exclude-standard --deduplicate) >"$list"
	else
		(cd "$top" && find . \( -name .git -o -path ./run \
		    -o -name 'build*' -o -name autom4te.cache -o -name .deps \
		    -o -name __pycache__ \) -prune -o -type f \
		    ! -name '*.o' ! -name '*.a' ! -name config.status \
		    ! -name config.h ! -path ./Makefile -print0) >"$list"
	fi
	# Listed but deleted files are no reason to stop.
	tar -C "$top" --null --no-recursion --ignore-failed-read \
	    -T "$list" -cf - 2>/dev/null | tar -C "$1" --no-same-owner -xf - ||
		fail "cannot copy the sources to $1"
	# What is no longer in the tree must not be built.
	tr '\0' '\n' <"$list" | sed 's|^\./||' | sort >"$list.txt"
	(cd "$1" && find src tests etc man scripts -type f \
	    \( -name '*.[ch]' -o -name '*.mk' -o -name '*.py' -o -name '*.sql' \
	    -o -name '*.def' \) -print) | sort |
	    comm -13 "$list.txt" - | while IFS= read -r f; do
		rm -f "$1/$f"
	done
	if [ ! -e "$1/configure" ] || [ -n "$(find "$1" \
	    \( -name '*.mk' -o -name configure.ac -o -name Makefile.am \) \
	    -newer "$1/configure" -print | head -n 1)" ]; then
		say "autoreconf"
		(cd "$1" && autoreconf -i >"$1.autoreconf" 2>&1) || {
			cat "$1.autoreconf" >&2
			fail "autoreconf failed"
		}
		touch "$1/configure"
	fi
}

# build SOURCE DIR CONFIGURE-ARGUMENT... - configures once, then makes.
build() {
	source_dir=$1 build_dir=$2
	shift 2
	mkdir -p "$build_dir"
	printf '%s\n' "$@" >"$build_dir.args.new"
	if [ ! -e "$build_dir/config.status" ] ||
	    [ "$source_dir/configure" -nt "$build_dir/config.status" ] ||
	    ! cmp -s "$build_dir.args.new" "$build_dir.args"; then
		say "configure $*"
		(cd "$build_dir" && "$source_dir/configure" -q "$@" \
		    >configure.out 2>&1) || {
			tail -n 20 "$build_dir/configure.out" >&2
			return 1
		}
		mv "$build_dir.args.new" "$build_dir.args"
	fi
	say "make"
	(cd "$build_dir" && make -s -j "$(nproc)" >make.out 2>&1) || {
		grep -n -B 2 -A 8 -E 'error|Error|undefined' \
		    "$build_dir/make.out" | head -n 60 >&2
		return 1
	}
}
