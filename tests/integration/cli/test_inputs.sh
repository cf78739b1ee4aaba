#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 240
# What keeps secrets never reaches a job by mistake: a tree with more than sixty planted names goes in by
# --dir, by --file and through links, and what arrived is judged from inside the job, by names and
# by bytes. Then what a person can say: --include, --exclude, --home, and two trees.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit 1
. tests/support/lych.sh
command -v git >/dev/null || skip "there is no git"
lych_begin inputs
lych up --detach <&- >&- || fail "up"
cd "$LYCH_TMP" || exit 1

count=0
is() { # what, expected, got
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'; stderr: $(tail -5 err 2>/dev/null)"
	count=$((count + 1))
}
refused() { # what, error code, text in the message, options
	local what=$1 code=$2 words=$3
	shift 3
	lych run -n "$@" -- true >out 2>err && fail "$what: it ran"
	is "$what: code" 1 "$(grep -c "^      $code  " err)"
	is "$what: words" 1 "$(grep -cF -- "$words" err)"
}
inside() { lych run -n "$@" -- sh -c 'find . -mindepth 1 ! -type d | sort | tr "\n" " "; grep -rl PLANTED . >&2' 2>err; } # options

# --- the tree: names that say it, in any case and at any depth
by_name=(.env .env.local .env.production .ENV.Staging .envrc .dev.vars deploy/prod.env sub/deep/er/.env
	.ssh/id_ed25519 .ssh/config backup/.SSH/known_hosts id_rsa id_ecdsa keys/ID_ED25519 keys/id_ed25519_sk keys/ssh_host_rsa_key keys/a.ppk
	.gnupg/private-keys-v1.d/k secring.gpg private_key config/master.key k/cert.p12 k/cert.PFX k/release.jks k/debug.keystore k/svc.keytab
	k/vault.kdbx .config/sops/age/keys.txt
	.aws/credentials .aws/config .Azure/accessTokens.json .config/gcloud/credentials.db .oci/config .boto .s3cfg .databrickscfg
	gha-creds-0123.json client_secret_1.apps.googleusercontent.com.json application_default_credentials.json .config/rclone/rclone.conf .fly/config.yml
	.terraform.d/credentials.tfrc.json infra/main.tfstate infra/prod.tfvars
	.kube/config kubeconfig stage.kubeconfig .docker/config.json .dockercfg .vault-token
	.claude/.credentials.json .claude.json .codex/auth.json .gemini/oauth_creds.json .local/share/opencode/auth.json
	.config/github-copilot/hosts.json .cache/huggingface/token .kaggle/kaggle.json
	.git-credentials .config/gh/hosts.yml .config/glab-cli/config.yml
	.npmrc sub/.npmrc .pypirc .cargo/credentials.toml .m2/settings.xml .gradle/gradle.properties
	.netrc _netrc .authinfo .pgpass .my.cnf .password-store/mail.gpg .bash_history .mozilla/firefox/key4.db .config/lychgate/backup.key
	secrets.yaml .streamlit/secrets.toml credentials .htpasswd
	.Xauthority .ICEauthority .netrc.gpg .config/fly/config.yml .msmtprc .config/isyncrc '.config/Bitwarden CLI/data.json'
	.config/Signal/config.json .electrum/wallets/default_wallet .local/share/fish/fish_history)
mkdir tree
for name in "${by_name[@]}"; do
	mkdir -p "tree/$(dirname "$name")"
	echo "PLANTED $name" >"tree/$name" || fail "$name"
done
# --- and what only the bytes say
plant() { # path, text
	mkdir -p "tree/$(dirname "$1")"
	printf '%b\nPLANTED\n' "$2" >"tree/$1" || fail "$1"
	by_bytes+=("$1")
}
by_bytes=()
pem='-----BEGIN %s KEY-----\nMIIEpAIBAAKC'
# shellcheck disable=SC2059
{
	plant deploy-key "$(printf -- "$pem" 'OPENSSH PRIVATE')"
	plant tls/server.pem "$(printf -- "$pem" 'EC PRIVATE')"
	plant tls/all.crt "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n$(printf -- "$pem" PRIVATE)"
	plant notes/howto.md "see\n$(printf -- "$pem" 'RSA PRIVATE')"
}
plant sa.json '{"private_key": "-----BEGIN PRIVATE KEY-----\\nMII"}'
plant agekeys 'AGE-SECRET-KEY-1QQQ'
plant c.yaml 'users:\n- user:\n    client-key-data: LS0'
plant .git/config '[remote "o"]\n\turl = https://me:ghp_x@github.com/a/b.git'
plant vendor/x/.git/config '[http]\n\textraheader = AUTHORIZATION: basic eA=='
plant .yarnrc.yml 'npmAuthToken: x'
planted=$((${#by_name[@]} + ${#by_bytes[@]}))
[ "$planted" -ge 60 ] || fail "only $planted planted"

# --- what is like them, and goes in
innocent=(.env.example .git/HEAD .claude/settings.json id_rsa.pub main.c src/env.py src/lib/credentials/types.mjs tls/ca.pem vendor/y/.git/config)
mkdir -p tree/src/lib/credentials tree/vendor/y/.git
for name in "${innocent[@]}"; do echo fine >"tree/$name"; done
echo '	m = "-----BEGIN PRIVATE KEY-----";' >tree/main.c
printf -- '-----BEGIN CERTIFICATE-----\n' >tree/tls/ca.pem
printf '[remote "o"]\n\turl = ssh://git@github.com/a/b\n' >tree/vendor/y/.git/config
ln -s .env tree/to-env && ln -s .ssh tree/to-ssh && ln -s ../../tree/.aws/credentials tree/src/out
all=$(printf './%s\n' "${innocent[@]}" to-env to-ssh | LC_ALL=C sort | tr '\n' ' ')

# --- refused: each one by --file, by its name, another one's name, and through links
ln -s tree/.ssh keys-link && ln -s "$LYCH_TMP/tree/.env" plain.txt && ln tree/deploy-key hard
for name in "${by_name[@]}" "${by_bytes[@]}"; do
	refused "--file $name" LYCH-SPEC-016 "tree/$name" --file "tree/$name=x"
done
refused "a link to a file" LYCH-SPEC-016 "keeps secrets: the environment of a program" --file plain.txt
refused "through a link" LYCH-SPEC-016 "tree/.ssh' keeps secrets: SSH keys" --file keys-link/config
refused "another name for the same bytes" LYCH-SPEC-016 "hard: it holds a private key" --file hard
refused "the daemons' environment" LYCH-SPEC-016 "keeps secrets" --file /proc/self/environ=x
refused "beside an innocent one" LYCH-SPEC-016 "tree/.env" --file tree/main.c --file tree/.env
# --- and each directory by --dir
for name in .ssh .aws .gnupg .kube .docker .config/gcloud .config/gh .password-store .mozilla/firefox backup/.SSH; do
	refused "--dir $name" LYCH-SPEC-016 "keeps secrets" --dir "tree/$name"
done
refused "a directory through a link" LYCH-SPEC-016 "SSH keys" --dir keys-link/.
(cd tree/.ssh && lych run -n --dir . -- true 2>../../err) && fail "'.' in .ssh"
is "'.' in .ssh" 1 "$(grep -c LYCH-SPEC-016 err)"

# --- the tree: what arrived, told from inside, and what was left out, told outside
is "what arrived of $planted" "$all" "$(inside --dir tree)"
is "no planted byte among it" 0 "$(grep -c '^\./' err)"
for name in "${by_name[@]}" "${by_bytes[@]}"; do
	part=$name
	until grep -qF "lych: left out: $part: " err; do
		[[ $part == */* ]] || fail "$name was left out in silence: $(cat err)"
		part=${part%/*}
	done
	count=$((count + 1))
done
is "a directory of code, itself" "./types.mjs " "$(inside --dir tree/src/lib/credentials)"
is "what arrived, once more" "$all" "$(inside --dir tree)"
is "a link that leads out" 1 "$(grep -c 'left out: src/out: a symlink that leads out' err)"
is "what to do" 1 "$(grep -c -e '--include PATTERN' err)"
is "a tree within another" "$(tr ' ' '\n' <<<"$all" | sed -n 's|^\./|./t/tree/|p' | tr '\n' ' ')" \
	"$(mkdir outer && cp -a tree outer/ && rm outer/tree/src/out && inside --dir outer=t)"
# shellcheck disable=SC2016
is "where a link leads is not there" "no no" "$(lych run -n -C tree -- sh -c 'for f in to-env to-ssh/config; do cat $f >/dev/null 2>&1 && echo yes || echo no; done | xargs' 2>err)"

# --- home and Lychgate's own
mkdir -p "$HOME/src" && echo mine >"$HOME/src/a" && echo mine >"$HOME/b" && ln -s "$HOME" home-link
for dir in "$HOME" "$HOME/" "$HOME/src/.." home-link/.; do
	refused "--dir $dir" LYCH-SPEC-016 "your whole home directory; name a directory in it, or say --home" --dir "$dir"
done
refused "what holds it" LYCH-SPEC-016 "it holds your home directory" --dir .
refused "'/'" LYCH-SPEC-016 "it holds your home directory" --dir /
is "a directory in it" "./a " "$(inside --dir "$HOME/src")"
is "--home" "./b ./src/a " "$(inside --dir "$HOME" --home)"
is "and what keeps secrets is left out" 1 "$(grep -c "left out: .config/lychgate: " err)"
for dir in "$LYCHGATE_DATA" "$LYCHGATE_DATA/log" "$XDG_RUNTIME_DIR/lychgate"; do
	refused "--dir $dir" LYCH-SPEC-016 "Lychgate's own" --dir "$dir" --home --include '*'
done
mkdir -p "$LYCHGATE_DATA.before-1" && echo sk-live >"$LYCHGATE_DATA.before-1/portal_x"
refused "of what a restore moved aside" LYCH-SPEC-016 "Lychgate's own" --dir "$LYCHGATE_DATA.before-1" --include '*'
refused "a file of that" LYCH-SPEC-016 "Lychgate's own" --file "$LYCHGATE_DATA.before-1/portal_x" --include '*'
rm -r "$LYCHGATE_DATA.before-1"
mkdir -p another/secrets && echo x | tee another/secrets/lychgate_work >another/secrets/portal_x
refused "a provider's key of another's" LYCH-SPEC-016 "Lychgate's own secrets" --file another/secrets/portal_x
is "nor in its directory" "" "$(inside --dir another/secrets)"
refused "another data directory's secrets" LYCH-SPEC-016 "Lychgate's own secrets" --file another/secrets/lychgate_work
for pattern in 'key[0-9]' 'a\*' '!n' '#h' ''; do
	refused "the pattern '$pattern'" LYCH-CORE-004 "a pattern has no" --dir one --exclude "$pattern"
done
refused "--file of its own" LYCH-SPEC-016 "Lychgate's own" --file "$LYCHGATE_DATA/secrets/lychgate_work" --include '*'
is "inside a tree" 0 "$(inside --dir "$LYCH_TMP" --home --include '*' >out; grep -cE '\./data/|\./run/lychgate' out)"
is "it is named" 2 "$(grep -cE "left out: (data|run/lychgate): Lychgate's own" err)"

# --- yes, this one
is "--include of a name" "./.env ./sub/deep/er/.env" "$(inside --dir tree --include .env | tr ' ' '\n' | grep '/\.env$' | xargs)"
is "and of no other" "$((2 + $(wc -w <<<"$all")))" "$(inside --dir tree --include .env | wc -w)"
is "--include of a path" 1 "$(inside --dir tree --include .ssh/config | tr ' ' '\n' | grep -c '^./.ssh')"
is "and the others of it are named" 1 "$(grep -c 'left out: .ssh/id_ed25519: keeps secrets: SSH keys' err)"
is "--include of a directory" 2 "$(inside --dir tree --include .aws/ | tr ' ' '\n' | grep -c '^./.aws')"
is "--include of bytes" 1 "$(inside --dir tree --include tls/server.pem | tr ' ' '\n' | grep -c '^./tls/server.pem')"
is "--file with --include" "PLANTED .env" "$(lych run -n --file tree/.env --include .env -- cat .env)"
is "... as it was written" "PLANTED .env" "$(lych run -n --file "$LYCH_TMP/tree/.env=x" --include "$LYCH_TMP/tree/.env" -- cat x)"
refused "... another one" LYCH-SPEC-016 "tree/.npmrc" --file tree/.npmrc --include .env
is "--dir with --include" 2 "$(inside --dir tree/.aws --include .aws | wc -w)"

# --- not that
mkdir -p job/build/o job/src/build job/doc && touch job/{a.o,b.c} job/build/{x,o/y} job/src/{c.c,d.o} job/src/build/z job/doc/e
is "--exclude" "./b.c ./doc/e ./src/c.c " "$(inside --dir job --exclude '*.o' --exclude build)"
is "anchored" "./a.o ./b.c ./doc/e ./src/build/z ./src/c.c ./src/d.o " "$(inside --dir job --exclude /build)"
is "a path" "./a.o ./b.c ./build/o/y ./build/x ./doc/e ./src/c.c ./src/d.o " "$(inside --dir job --exclude 'src/build/')"
is "it wins" "./b.c ./src/c.c " "$(inside --dir job --exclude '*.o' --exclude build --exclude doc/ --include '*.o')"
lych run -n --exclude x -- true 2>err; is "--exclude without --dir" 2 $?
lych run -n --include x -- true 2>err; is "--include of nothing" 2 $?

# --- two trees
mkdir one two && echo 1 >one/f && echo 2 >two/f
refused "in one place" LYCH-CORE-004 "--dir two=NAME" --dir one --dir two
refused "in one other" LYCH-CORE-004 "would be in one place" --dir one=t --dir two=t
refused "upwards" LYCH-SPEC-006 "--dir two=../x" --dir one --dir two=../x
is "side by side" "1 2" "$(lych run -n --dir one --dir two=data/two -- cat f data/two/f | xargs)"
mkdir -p one/data && refused "one in the other's" LYCH-SPEC-013 "'data' is in one --dir" --dir one --dir two=data
is "at the top" "1" "$(rmdir one/data && lych run -n --dir one=. -- cat f)"

# --- what git would track
g() { git -C repo -c user.name=t -c user.email=t@localhost -c commit.gpgsign=false "$@" >/dev/null 2>err || fail "git $*: $(cat err)"; }
git init -q repo || fail "git init"
mkdir -p repo/{sub,build,empty} "$HOME/.config/git"
printf '*.o\n!keep.o\nbuild/\n' >repo/.gitignore && echo /local >repo/sub/.gitignore
echo excluded >repo/.git/info/exclude && echo '*.swp' >"$HOME/.config/git/ignore"
touch repo/{a.c,a.o,keep.o,new.c,gone.c,excluded,x.swp} repo/build/{x,tracked} repo/sub/{local,f}
echo PLANTED >repo/.env && ln -s a.c repo/link
g add .gitignore a.c gone.c sub && g add -f build/tracked .env && g commit -qm one && rm repo/gone.c
tracked="./.gitignore ./a.c ./build/tracked ./keep.o ./link ./new.c ./sub/.gitignore ./sub/f "
refused "no repository" LYCH-SPEC-013 "it is in no git repository" --dir one --git
mkdir astray && echo "gitdir: $LYCH_TMP/none" >astray/.git
refused "a repository that is elsewhere" LYCH-SPEC-013 "none/HEAD" --dir astray --git
refused "--git alone" LYCH-CORE-004 "--git goes with --dir" --git
is "--git" "$tracked" "$(inside --dir repo --git)"
is "a tracked secret is left out" 1 "$(grep -c 'left out: .env: ' err)"
is "what git ignores is not named" 1 "$(grep -c 'left out:' err)"
is "of a directory in it" "./.gitignore ./f " "$(inside --dir repo/sub --git)"
is "with an ignored one" "./.gitignore ./a.c ./a.o " "$(inside --dir repo --git --include a.o --exclude build \
	--exclude sub --exclude 'keep.*' --exclude link --exclude new.c)"
is "without one" 0 "$(inside --dir repo --git --exclude '*.c' | grep -c '\.c')"
g update-index --split-index && touch repo/late.c
is "with a split index" "${tracked/.\/link/.\/late.c .\/link}" "$(inside --dir repo --git --exclude none)"
rm repo/late.c
g clone -q . ../sparse && mkdir -p sparse/{in,out} && touch sparse/{in,out}/f
git -C sparse add -A && git -C sparse -c user.name=t -c user.email=t@localhost commit -qm two
git -C sparse sparse-checkout init --cone --sparse-index && git -C sparse sparse-checkout set in
[ ! -e sparse/out ] || fail "it is not sparse"
is "with a sparse index" "./.gitignore ./a.c ./gone.c ./in/f " "$(inside --dir sparse --git)"
git init -q --object-format=sha256 other && touch other/f && git -C other add f
refused "another format" LYCH-SPEC-013 "git ls-files ended with 128" --dir other --git
g worktree add -q ../wt && touch wt/new wt/b.o && rm wt/a.c
is "a worktree" "./.gitignore ./build/tracked ./gone.c ./new ./sub/.gitignore ./sub/f " "$(inside --dir wt --git)"
git init -q repo/nested && touch repo/nested/f
is "a repository in it" "$tracked" "$(inside --dir repo --git)"
is "is named" 1 "$(grep -c 'left out: nested: a git repository of its own' err)"

# git would wait for a pipe in the place of a list of names
for at in repo repo/sub; do
	mv "$at/.gitignore" rules && mkfifo "$at/.gitignore"
	refused "a pipe in $at" LYCH-SPEC-013 "$LYCH_TMP/$at/.gitignore is no file" --dir repo --git
	refused "a pipe in $at, of a part" LYCH-SPEC-013 "$at/.gitignore is no file" --dir repo/sub --git
	rm "$at/.gitignore" && mv rules "$at/.gitignore"
done

for at in info/alternates pack/multi-pack-index; do
	mkfifo "repo/.git/objects/$at"
	refused "a pipe for $at" LYCH-SPEC-013 "repo/.git/objects/$at is no file" --dir repo --git
	rm "repo/.git/objects/$at"
done
mkdir -p far/info && mkfifo far/info/alternates && echo ../../../far >repo/.git/objects/info/alternates
refused "a pipe where other objects are" LYCH-SPEC-013 "far/info/alternates is no file" --dir repo --git
rm repo/.git/objects/info/alternates

# what a killed one left is removed by the next, if it is old enough, ours and no link
old=$(mktemp -d /tmp/lych-git-XXXXXX) new=$(mktemp -d /tmp/lych-git-XXXXXX) other=$(mktemp -d /tmp/lych-git-XXXXXXX)
mkdir "$old/objects" && echo x >"$old/HEAD" && ln -s "$LYCH_TMP/repo" "$old/link"
touch -d '2 hours ago' "$old" "$other"
is "--git, after one was killed" "$tracked" "$(inside --dir repo --git)"
is "what is left of it, and what is not that" "no yes yes" \
	"$(for d in "$old" "$new" "$other"; do [ -e "$d" ] && echo yes || echo no; done | xargs)"
[ -e repo/a.c ] || fail "a link in it was followed"
rm -r "$new" "$other"

# what ends it while git is asked leaves nothing behind
mkdir asked && cat >asked/git <<END
#!/bin/sh
for a; do case \$a in --git-dir=*) echo "\${a#--git-dir=}" >'$LYCH_TMP/asked/dir' ;; esac; done
kill -TERM \$PPID
exec $(command -v git) "\$@"
END
chmod 755 asked/git
PATH=$LYCH_TMP/asked:$PATH lych run -n --dir repo --git -- true >/dev/null 2>&1
is "a signal ends it" 143 $?
grep -q '^/tmp/lych-git-' asked/dir || fail "git was not asked: $(cat asked/dir)"
[ ! -e "$(cat asked/dir)" ] || fail "$(cat asked/dir) is left"

# a repository is no reason to run anything
printf '#!/bin/sh\ntouch %s/ran\nexit 1\n' "$LYCH_TMP" >monitor && chmod 755 monitor && cp monitor "repo/.git/hooks/post-index-change"
for r in repo repo/nested; do
	for key in core.fsmonitor core.hooksPath core.sshCommand core.pager core.editor filter.x.clean filter.x.process diff.x.textconv \
		core.alternateRefsCommand remote.o.uploadpack alias.ls-files; do
		git -C "$r" config "$key" "$LYCH_TMP/monitor"
	done
done
echo '* filter=x diff=x' >repo/.gitattributes
git -C repo status >/dev/null 2>&1
[ -e ran ] || fail "the monitor is no trap"
rm ran && git -C repo config core.worktree /etc && git -C repo config include.path /dev/zero
is "with its traps" "${tracked/.\/.gitignore/.\/.gitattributes .\/.gitignore}" "$(inside --dir repo --git)"
[ ! -e ran ] || fail "a program of the repository ran"
echo junk >repo/.git/index && refused "an index that is none" LYCH-SPEC-013 "git ls-files ended with 128" --dir repo --git
echo "$planted planted; $count checks"
