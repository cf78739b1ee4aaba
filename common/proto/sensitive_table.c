/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The rows of sensitive.h, by what is kept there. What a row says is shown to people: "keeps
 * secrets: SSH keys". A new row needs a source, beside it: where the program's own pages say that
 * it has something secret there. `make docs` afterwards.
 */
#include "common/proto/sensitive.h"

#include "common/attr.h"

#define NAME(name, what) {SENSITIVE_NAME, name, what}
#define ONLY_FILE(name, what) {SENSITIVE_FILE, name, what}
#define BEGIN(name, what) {SENSITIVE_BEGIN, name, what}
#define END(name, what) {SENSITIVE_END, name, what}
#define PLACE(name, what) {SENSITIVE_PLACE, name, what}
#define BELOW(name, what) {SENSITIVE_BELOW, name, what}
#define SYSTEM(name, what) {SENSITIVE_SYSTEM, name, what}
#define PUBLIC(name) {SENSITIVE_PUBLIC, name, ""}

/* clang-format off */
const struct sensitive sensitive_table[] = {
	/* what is in the repository as an example of the real one */
	PUBLIC(".env.example"),
	PUBLIC(".env.sample"),
	PUBLIC(".env.template"),
	PUBLIC(".env.tmpl"),
	PUBLIC(".env.dist"),
	PUBLIC(".envrc.example"),
	PUBLIC(".envrc.sample"),
	PUBLIC("example.env"),
	PUBLIC("sample.env"),
	PUBLIC("template.env"),

	PLACE(".config/lychgate", "what runs Lychgate and your services"),
	PLACE(".local/share/lychgate", "what runs Lychgate and your services"),
	PLACE(".config/containers", "what runs Lychgate and your services"),
	PLACE(".local/share/containers", "what runs Lychgate and your services"),
	PLACE(".config/systemd", "what runs Lychgate and your services"),
	PLACE(".local/share/systemd", "what runs Lychgate and your services"),

	NAME(".ssh", "SSH keys"),
	/* wherever a data directory is */
	BEGIN("lychgate_db_", "Lychgate's own secrets"),
	BEGIN("lychgate_work", "Lychgate's own secrets"),
	BEGIN("lychgate_generation_of_", "Lychgate's own secrets"),
	BELOW("secrets/portal_", "Lychgate's own secrets"),
	BELOW("secrets/host_", "Lychgate's own secrets"),

	NAME("id_rsa", "SSH keys"),
	NAME("id_dsa", "SSH keys"),
	NAME("id_ecdsa", "SSH keys"),
	NAME("id_ecdsa_sk", "SSH keys"),
	NAME("id_ed25519", "SSH keys"),
	NAME("id_ed25519_sk", "SSH keys"),
	NAME("id_xmss", "SSH keys"),
	NAME("ssh_host_rsa_key", "SSH keys"),
	NAME("ssh_host_dsa_key", "SSH keys"),
	NAME("ssh_host_ecdsa_key", "SSH keys"),
	NAME("ssh_host_ed25519_key", "SSH keys"),
	END(".ppk", "SSH keys"),
	/* dropbearkey(1): not PEM */
	NAME("id_dropbear", "SSH keys"),
	NAME("dropbear_rsa_host_key", "SSH keys"),
	NAME("dropbear_dss_host_key", "SSH keys"),
	NAME("dropbear_ecdsa_host_key", "SSH keys"),
	NAME("dropbear_ed25519_host_key", "SSH keys"),
	/* smallstep.com/docs, "step path" */
	NAME(".step", "SSH keys"),
	/* goteleport.com/docs, "tsh": profile and keys */
	NAME(".tsh", "SSH keys"),

	NAME(".gnupg", "OpenPGP keys"),
	NAME(".gpg", "OpenPGP keys"),
	NAME("secring.gpg", "OpenPGP keys"),
	/* sequoia-pgp.org, "sq key": the software keystore */
	PLACE(".local/share/sequoia", "OpenPGP keys"),

	ONLY_FILE("private_key", "key material"),
	NAME("master.key", "key material"),
	END(".p12", "key material"),
	END(".pfx", "key material"),
	END(".jks", "key material"),
	END(".keystore", "key material"),
	END(".keytab", "key material"),
	END(".kdbx", "key material"),
	NAME(".pki", "key material"),
	PLACE(".config/sops", "key material"),
	PLACE(".config/age", "key material"),
	/* NSS's database in its XDG place, as of Chromium's and Firefox's packages */
	PLACE(".local/share/pki", "key material"),
	/* adb's page, "Authorize": adbkey */
	NAME("adbkey", "key material"),
	/* openvpn(8): a profile has its keys inline; NetworkManager's plugin puts them into .cert */
	END(".ovpn", "key material"),
	NAME(".cert", "key material"),
	/* borg's docs, "Environment variables": BORG_KEYS_DIR */
	PLACE(".config/borg", "key material"),
	/* kopia.io/docs, "Repository": the password beside the configuration */
	PLACE(".config/kopia", "key material"),
	/* tarsnap-keygen(1) */
	NAME("tarsnap.key", "key material"),
	NAME(".tarsnap.key", "key material"),
	NAME("wallet.dat", "wallets"),
	PLACE(".config/solana", "wallets"),
	/* bitcoin.org, "Securing your wallet"; the same layout in what was made from it */
	NAME(".bitcoin", "wallets"),
	NAME(".litecoin", "wallets"),
	NAME(".dogecoin", "wallets"),
	NAME(".dashcore", "wallets"),
	NAME(".zcash", "wallets"),
	/* electrum.readthedocs.io, FAQ: "Where is the wallet file located?" */
	NAME(".electrum", "wallets"),
	NAME(".electron-cash", "wallets"),
	/* geth's docs, "Account management": keystore below the data directory */
	NAME(".ethereum", "wallets"),
	/* getmonero.org, monero-wallet-cli and monerod: data directories */
	NAME(".bitmonero", "wallets"),
	NAME(".shared-ringdb", "wallets"),
	/* the pages of each: Sparrow, Wasabi, Exodus, Ledger Live, Atomic, Trezor Suite */
	NAME(".sparrow", "wallets"),
	NAME(".walletwasabi", "wallets"),
	PLACE(".config/exodus", "wallets"),
	PLACE(".config/ledger live", "wallets"),
	PLACE(".config/atomic", "wallets"),
	PLACE(".config/@trezor/suite-desktop", "wallets"),
	/* docs of lnd and of Core Lightning: macaroons, hsm_secret */
	NAME(".lnd", "wallets"),
	NAME(".lightning", "wallets"),
	/* book.getfoundry.sh, "cast wallet": ~/.foundry/keystores */
	PLACE(".foundry/keystores", "wallets"),
	/* docs.near.org, docs.sui.io, aptos.dev: their command lines */
	NAME(".near-credentials", "wallets"),
	PLACE(".sui/sui_config", "wallets"),
	PLACE(".aptos/config.yaml", "wallets"),

	BEGIN(".env", "the environment of a program"),
	END(".env", "the environment of a program"),
	NAME(".dev.vars", "the environment of a program"),

	ONLY_FILE("credentials", "credentials"),
	NAME(".credentials", "credentials"),
	NAME("credentials.json", "credentials"),
	NAME(".credentials.json", "credentials"),
	NAME("credentials.toml", "credentials"),
	NAME(".secret", "credentials"),
	NAME(".secrets", "credentials"),
	NAME("secrets.json", "credentials"),
	NAME("secrets.yml", "credentials"),
	NAME("secrets.yaml", "credentials"),
	NAME("secrets.toml", "credentials"),
	NAME(".htpasswd", "credentials"),

	NAME(".aws", "cloud credentials"),
	NAME(".azure", "cloud credentials"),
	NAME(".gcloud", "cloud credentials"),
	PLACE(".config/gcloud", "cloud credentials"),
	NAME("application_default_credentials.json", "cloud credentials"),
	BEGIN("gha-creds-", "cloud credentials"),
	NAME("client_secret.json", "cloud credentials"),
	NAME("client_secrets.json", "cloud credentials"),
	END(".apps.googleusercontent.com.json", "cloud credentials"),
	NAME(".oci", "cloud credentials"),
	NAME(".aliyun", "cloud credentials"),
	NAME(".bluemix", "cloud credentials"),
	NAME(".boto", "cloud credentials"),
	NAME(".s3cfg", "cloud credentials"),
	NAME(".passwd-s3fs", "cloud credentials"),
	NAME(".databrickscfg", "cloud credentials"),
	NAME(".snowsql", "cloud credentials"),
	NAME(".fly", "cloud credentials"),
	/* flyctl: the directory that its configuration may be in; .flyrc: concourse-ci.org, "fly" */
	PLACE(".config/fly", "cloud credentials"),
	NAME(".flyrc", "cloud credentials"),
	/* vercel.com/docs, "Global configuration" */
	PLACE(".local/share/com.vercel.cli", "cloud credentials"),
	/* developers.cloudflare.com, "wrangler login" and "cloudflared: useful terms" */
	PLACE(".wrangler/config", "cloud credentials"),
	PLACE(".config/.wrangler", "cloud credentials"),
	NAME(".cloudflared", "cloud credentials"),
	/* scaleway.com/docs, "Configuration file" */
	PLACE(".config/scw", "cloud credentials"),
	/* docs.openstack.org, python-openstackclient: clouds.yaml, secure.yaml */
	PLACE(".config/openstack", "cloud credentials"),
	NAME("clouds.yaml", "cloud credentials"),
	NAME("secure.yaml", "cloud credentials"),
	/* npm's configstore, where firebase-tools has its tokens (firebase.google.com/docs/cli) */
	PLACE(".config/configstore", "cloud credentials"),
	/* docs.railway.com, "CLI"; docs.stripe.com, "stripe login"; twilio.com/docs, "Twilio CLI" */
	PLACE(".railway/config.json", "cloud credentials"),
	PLACE(".config/stripe", "cloud credentials"),
	NAME(".twilio-cli", "cloud credentials"),
	/* supabase.com/docs, "supabase login"; planetscale.com/docs, "pscale"; docs.turso.tech, "turso auth" */
	PLACE(".supabase/access-token", "cloud credentials"),
	PLACE(".config/planetscale", "cloud credentials"),
	PLACE(".config/turso", "cloud credentials"),
	/* docs.sentry.io, "Configuration and authentication" */
	NAME(".sentryclirc", "cloud credentials"),
	/* techdocs.akamai.com, "Set up authentication credentials" */
	NAME(".edgerc", "cloud credentials"),
	/* pulumi.com/docs, "pulumi login": credentials.json beside others */
	NAME(".pulumi", "cloud credentials"),
	/* min.io/docs, "mc alias"; backblaze.com/docs, "b2 account" */
	PLACE(".mc/config.json", "cloud credentials"),
	NAME(".b2_account_info", "cloud credentials"),
	/* docs.snowflake.com, "connections.toml"; docs.getdbt.com, "profiles.yml" */
	NAME(".snowflake", "cloud credentials"),
	PLACE(".dbt/profiles.yml", "cloud credentials"),
	/* ngrok's docs, before .config */
	NAME(".ngrok2", "cloud credentials"),
	/* modal.com/docs, "modal token"; docs.runpod.io, "runpodctl" */
	NAME(".modal.toml", "cloud credentials"),
	NAME(".runpod", "cloud credentials"),
	/* the pages of each command line: Exoscale, UpCloud, Civo, Vultr */
	PLACE(".config/exoscale", "cloud credentials"),
	PLACE(".config/upctl.yaml", "cloud credentials"),
	NAME(".civo.json", "cloud credentials"),
	NAME(".vultr-cli.yaml", "cloud credentials"),
	/* circleci.com/docs, "circleci setup"; travis.rb's README */
	PLACE(".circleci/cli.yml", "cloud credentials"),
	PLACE(".travis/config.yml", "cloud credentials"),
	PLACE(".config/doctl", "cloud credentials"),
	PLACE(".config/hcloud", "cloud credentials"),
	PLACE(".config/linode-cli", "cloud credentials"),
	PLACE(".config/netlify", "cloud credentials"),
	PLACE(".config/ngrok", "cloud credentials"),
	PLACE(".config/rclone", "cloud credentials"),
	NAME("rclone.conf", "cloud credentials"),
	NAME(".rclone.conf", "cloud credentials"),
	NAME(".terraformrc", "cloud credentials"),
	NAME(".terraform.d", "cloud credentials"),
	END(".tfstate", "cloud credentials"),
	END(".tfstate.backup", "cloud credentials"),
	END(".tfvars", "cloud credentials"),

	NAME(".kube", "credentials of containers and clusters"),
	NAME("kubeconfig", "credentials of containers and clusters"),
	END(".kubeconfig", "credentials of containers and clusters"),
	NAME(".docker", "credentials of containers and clusters"),
	NAME(".dockercfg", "credentials of containers and clusters"),
	NAME(".vault-token", "credentials of containers and clusters"),
	NAME(".vault_pass", "credentials of containers and clusters"),
	NAME(".vault_pass.txt", "credentials of containers and clusters"),
	NAME(".vault-password", "credentials of containers and clusters"),
	/* argo-cd.readthedocs.io, "argocd": --config */
	PLACE(".config/argocd", "credentials of containers and clusters"),
	PLACE(".argocd/config", "credentials of containers and clusters"),
	/* helm.sh/docs, "helm registry login" */
	PLACE(".config/helm/registry", "credentials of containers and clusters"),
	/* talos.dev, "talosctl config" */
	NAME("talosconfig", "credentials of containers and clusters"),
	PLACE(".talos/config", "credentials of containers and clusters"),
	/* rancher's docs, "rancher login" */
	PLACE(".rancher/cli2.json", "credentials of containers and clusters"),

	NAME(".claude.json", "credentials of agents"),
	PLACE(".codex/auth.json", "credentials of agents"),
	PLACE(".local/share/opencode/auth.json", "credentials of agents"),
	PLACE(".config/cursor/auth.json", "credentials of agents"),
	PLACE(".pi/agent/auth.json", "credentials of agents"),
	PLACE(".factory/auth.json", "credentials of agents"),
	/* charmbracelet/crush, docs/config: api_key */
	PLACE(".config/crush", "credentials of agents"),
	PLACE(".local/share/crush", "credentials of agents"),
	/* aider.chat/docs, "YAML config file": api-key */
	NAME(".aider.conf.yml", "credentials of agents"),
	/* docs.continue.dev, "config.yaml": apiKey */
	PLACE(".continue/config.yaml", "credentials of agents"),
	PLACE(".continue/config.json", "credentials of agents"),
	/* mcp-remote's README: MCP_REMOTE_CONFIG_DIR */
	NAME(".mcp-auth", "credentials of agents"),
	/* what the desktop program of Claude and older ones of its command line have in .config */
	PLACE(".config/claude", "credentials of agents"),
	/* the READMEs of aichat, shell_gpt, mods */
	PLACE(".config/aichat", "credentials of agents"),
	PLACE(".config/shell_gpt", "credentials of agents"),
	PLACE(".config/mods", "credentials of agents"),
	/* docs.windsurf.com: Codeium's key */
	NAME(".codeium", "credentials of agents"),
	/* sessions of editors: VS Code's and its relatives' secret storage */
	PLACE(".config/code/user/globalstorage", "credentials of agents"),
	PLACE(".config/cursor/user/globalstorage", "credentials of agents"),
	PLACE(".config/vscodium/user/globalstorage", "credentials of agents"),
	PLACE(".config/windsurf/user/globalstorage", "credentials of agents"),
	NAME("oauth_creds.json", "credentials of agents"),
	PLACE(".config/github-copilot", "credentials of agents"),
	PLACE(".config/io.datasette.llm", "credentials of agents"),
	PLACE(".cache/huggingface/token", "credentials of agents"),
	PLACE(".cache/huggingface/stored_tokens", "credentials of agents"),
	NAME(".huggingface", "credentials of agents"),
	NAME(".kaggle", "credentials of agents"),

	NAME(".git-credentials", "credentials of git servers"),
	/* gerrit's docs, "http.cookieFile" */
	NAME(".gitcookies", "credentials of git servers"),
	/* svnbook, "Caching credentials" */
	PLACE(".subversion/auth", "credentials of git servers"),
	/* the READMEs of lab and of forgejo-cli */
	PLACE(".config/lab", "credentials of git servers"),
	PLACE(".local/share/forgejo-cli", "credentials of git servers"),
	PLACE(".config/gh", "credentials of git servers"),
	PLACE(".config/hub", "credentials of git servers"),
	PLACE(".config/glab-cli", "credentials of git servers"),
	PLACE(".config/tea", "credentials of git servers"),

	NAME(".npmrc", "credentials of package registries"),
	NAME(".pypirc", "credentials of package registries"),
	PLACE(".composer/auth.json", "credentials of package registries"),
	PLACE(".config/composer/auth.json", "credentials of package registries"),
	PLACE(".bundle/config", "credentials of package registries"),
	PLACE(".m2/settings.xml", "credentials of package registries"),
	PLACE(".m2/settings-security.xml", "credentials of package registries"),
	PLACE(".gradle/gradle.properties", "credentials of package registries"),
	PLACE(".nuget/nuget/nuget.config", "credentials of package registries"),
	/* pnpm.io, "Authentication settings": auth.ini, and from 12.1 on config.yaml */
	PLACE(".config/pnpm", "credentials of package registries"),
	/* python-poetry.org, "Configuring credentials": auth.toml */
	PLACE(".config/pypoetry", "credentials of package registries"),
	/* dart.dev, "dart pub token"; pub.dev, pub-credentials.json */
	PLACE(".config/dart", "credentials of package registries"),
	/* hexdocs.pm, "mix hex.user": HEX_HOME */
	PLACE(".hex/hex.config", "credentials of package registries"),
	PLACE(".config/hex", "credentials of package registries"),
	/* cabal.readthedocs.io, "Configuration files": password */
	PLACE(".cabal/config", "credentials of package registries"),
	PLACE(".config/cabal", "credentials of package registries"),
	/* luarocks' wiki, "upload" */
	PLACE(".luarocks/upload_config.lua", "credentials of package registries"),
	/* docs.jfrog.com, "JFROG_CLI_HOME_DIR" */
	NAME(".jfrog", "credentials of package registries"),
	/* docs.ansible.com, GALAXY_TOKEN_PATH */
	PLACE(".ansible/galaxy_token", "credentials of package registries"),
	/* docs.conan.io, "Storage": logins */
	NAME(".conan.db", "credentials of package registries"),
	/* anaconda-client's docs: tokens */
	NAME(".continuum", "credentials of package registries"),
	/* bundler.io, "bundle config", in its XDG place */
	PLACE(".config/bundle", "credentials of package registries"),

	NAME(".netrc", "passwords"),
	NAME("_netrc", "passwords"),
	NAME(".authinfo", "passwords"),
	NAME(".authinfo.gpg", "passwords"),
	/* git-credential-netrc's help */
	NAME(".netrc.gpg", "passwords"),
	/* curl(1), wget(1) */
	NAME(".curlrc", "passwords"),
	NAME(".wgetrc", "passwords"),
	NAME(".pgpass", "passwords"),
	NAME(".pg_service.conf", "passwords"),
	NAME(".my.cnf", "passwords"),
	NAME(".mylogin.cnf", "passwords"),
	NAME(".cvspass", "passwords"),
	NAME(".smbcredentials", "passwords"),
	NAME(".msmtprc", "passwords"),
	/* msmtp(1), mbsync(1) */
	PLACE(".config/msmtp", "passwords"),
	NAME(".mbsyncrc", "passwords"),
	PLACE(".config/isyncrc", "passwords"),
	/* offlineimap(1), getmail's docs, mutt's and neomutt's manuals, aerc-accounts(5), esmtprc(5) */
	NAME(".offlineimaprc", "passwords"),
	PLACE(".config/offlineimap", "passwords"),
	NAME(".getmail", "passwords"),
	PLACE(".config/getmail", "passwords"),
	NAME(".muttrc", "passwords"),
	NAME(".mutt", "passwords"),
	PLACE(".config/mutt", "passwords"),
	NAME(".neomuttrc", "passwords"),
	NAME(".neomutt", "passwords"),
	PLACE(".config/neomutt", "passwords"),
	PLACE(".config/aerc", "passwords"),
	NAME(".esmtprc", "passwords"),
	/* himalaya's README, vdirsyncer's docs, davmail.sourceforge.net */
	PLACE(".config/himalaya", "passwords"),
	PLACE(".config/vdirsyncer", "passwords"),
	NAME(".vdirsyncer", "passwords"),
	NAME(".davmail.properties", "passwords"),
	NAME(".fetchmailrc", "passwords"),
	NAME(".erlang.cookie", "passwords"),
	NAME(".password-store", "passwords"),
	PLACE(".config/op", "passwords"),
	/* bitwarden.com/help, "Bitwarden data storage"; rbw's README */
	PLACE(".config/bitwarden", "passwords"),
	PLACE(".config/bitwarden cli", "passwords"),
	PLACE(".config/rbw", "passwords"),
	PLACE(".local/share/rbw", "passwords"),
	PLACE(".cache/rbw", "passwords"),
	/* the pages of each: 1Password, KeePassXC, gopass, passage, LastPass */
	PLACE(".config/1password", "passwords"),
	PLACE(".config/keepassxc", "passwords"),
	PLACE(".config/gopass", "passwords"),
	PLACE(".local/share/gopass", "passwords"),
	NAME(".passage", "passwords"),
	NAME(".lpass", "passwords"),
	PLACE(".local/share/lpass", "passwords"),
	/* google-authenticator(1); otpclient */
	NAME(".google_authenticator", "passwords"),
	PLACE(".config/otpclient", "passwords"),
	/* vncpasswd(1), and where TigerVNC has it now */
	PLACE(".vnc/passwd", "passwords"),
	PLACE(".config/tigervnc", "passwords"),
	/* davfs2.conf(5) */
	PLACE(".davfs2/secrets", "passwords"),
	/* Remmina's and FileZilla's wikis, lftp(1) */
	PLACE(".config/remmina", "passwords"),
	PLACE(".local/share/remmina", "passwords"),
	PLACE(".config/filezilla", "passwords"),
	NAME(".filezilla", "passwords"),
	PLACE(".local/share/lftp", "passwords"),
	/* DBeaver's docs, "Secured storage"; pgAdmin's, "Configuration" */
	NAME("credentials-config.json", "passwords"),
	NAME(".pgadmin", "passwords"),
	/* unixODBC, "odbc.ini"; docs.influxdata.com, "influx config"; clickhouse.com/docs, "clickhouse-client" */
	NAME(".odbc.ini", "passwords"),
	PLACE(".influxdbv2/configs", "passwords"),
	NAME(".clickhouse-client", "passwords"),
	PLACE(".local/share/keyrings", "passwords"),
	PLACE(".local/share/kwalletd", "passwords"),

	NAME(".bash_history", "what was typed"),
	NAME(".zsh_history", "what was typed"),
	NAME(".psql_history", "what was typed"),
	NAME(".mysql_history", "what was typed"),
	NAME(".python_history", "what was typed"),
	NAME(".node_repl_history", "what was typed"),
	/* fish's docs, "history"; atuin's, "config": key and session are there too; nushell's book */
	NAME("fish_history", "what was typed"),
	PLACE(".local/share/atuin", "what was typed"),
	PLACE(".config/nushell/history.txt", "what was typed"),
	PLACE(".config/nushell/history.sqlite3", "what was typed"),
	/* ksh(1), mksh(1), tcsh(1), zsh-newuser-install, "Z-shell sessions" */
	NAME(".sh_history", "what was typed"),
	NAME(".ksh_history", "what was typed"),
	NAME(".mksh_history", "what was typed"),
	NAME(".history", "what was typed"),
	NAME(".histfile", "what was typed"),
	NAME(".zhistory", "what was typed"),
	NAME(".zsh_sessions", "what was typed"),
	NAME(".bash_sessions", "what was typed"),
	/* the manuals of each: sqlite3, redis-cli, mongosh, irb, pry, php, R, octave, duckdb, lesskey(1), vim */
	NAME(".sqlite_history", "what was typed"),
	NAME(".rediscli_history", "what was typed"),
	NAME(".mongodb", "what was typed"),
	NAME(".dbshell", "what was typed"),
	NAME(".irb_history", "what was typed"),
	NAME(".pry_history", "what was typed"),
	NAME(".php_history", "what was typed"),
	NAME(".rhistory", "what was typed"),
	NAME(".octave_hist", "what was typed"),
	NAME(".duckdb_history", "what was typed"),
	NAME(".lesshst", "what was typed"),
	NAME(".viminfo", "what was typed"),
	/* ipython's docs, "HistoryManager" */
	PLACE(".ipython/profile_default/history.sqlite", "what was typed"),

	NAME(".mozilla", "mail and sessions of a browser"),
	/* Firefox 147's release notes: the XDG place */
	PLACE(".config/mozilla", "mail and sessions of a browser"),
	NAME(".librewolf", "mail and sessions of a browser"),
	NAME(".waterfox", "mail and sessions of a browser"),
	NAME(".zen", "mail and sessions of a browser"),
	NAME(".floorp", "mail and sessions of a browser"),
	NAME(".tor-browser", "mail and sessions of a browser"),
	PLACE(".local/share/torbrowser", "mail and sessions of a browser"),
	/* the pages of each: Opera, Vivaldi, Chrome's other channels, qutebrowser, GNOME Web */
	PLACE(".config/opera", "mail and sessions of a browser"),
	PLACE(".config/vivaldi", "mail and sessions of a browser"),
	PLACE(".config/google-chrome-beta", "mail and sessions of a browser"),
	PLACE(".config/google-chrome-unstable", "mail and sessions of a browser"),
	PLACE(".local/share/qutebrowser", "mail and sessions of a browser"),
	PLACE(".local/share/epiphany", "mail and sessions of a browser"),
	NAME("cookies.sqlite", "mail and sessions of a browser"),
	/* docs.flatpak.org, "Filesystem access"; snapcraft.io/docs, "Data locations": the data of whole programs */
	PLACE(".var/app", "mail and sessions of a browser"),
	PLACE("snap/firefox", "mail and sessions of a browser"),
	PLACE("snap/chromium", "mail and sessions of a browser"),
	PLACE("snap/thunderbird", "mail and sessions of a browser"),
	NAME(".thunderbird", "mail and sessions of a browser"),
	PLACE(".config/chromium", "mail and sessions of a browser"),
	PLACE(".config/google-chrome", "mail and sessions of a browser"),
	PLACE(".config/bravesoftware", "mail and sessions of a browser"),
	PLACE(".config/microsoft-edge", "mail and sessions of a browser"),
	/* Evolution's, Geary's and KDE PIM's pages */
	PLACE(".config/evolution", "mail and sessions of a browser"),
	PLACE(".local/share/evolution", "mail and sessions of a browser"),
	PLACE(".local/share/geary", "mail and sessions of a browser"),
	PLACE(".config/geary", "mail and sessions of a browser"),

	/* Signal-Desktop (config.json has the key of its database); signal-cli(1) */
	PLACE(".config/signal", "messages and their accounts"),
	PLACE(".config/signal desktop", "messages and their accounts"),
	PLACE(".local/share/signal-cli", "messages and their accounts"),
	/* the pages of each: Element, Telegram, Discord, Slack, Pidgin, WeeChat, irssi, Gajim, Dino */
	PLACE(".config/element", "messages and their accounts"),
	PLACE(".local/share/telegramdesktop", "messages and their accounts"),
	PLACE(".config/discord", "messages and their accounts"),
	PLACE(".config/slack", "messages and their accounts"),
	NAME(".purple", "messages and their accounts"),
	NAME(".weechat", "messages and their accounts"),
	PLACE(".config/weechat", "messages and their accounts"),
	NAME(".irssi", "messages and their accounts"),
	PLACE(".local/share/gajim", "messages and their accounts"),
	PLACE(".local/share/dino", "messages and their accounts"),

	/* Xsecurity(7), xauth(1); mutter, sddm and startx have others */
	BEGIN(".xauthority", "what speaks for your session"),
	BEGIN(".mutter-xwaylandauth.", "what speaks for your session"),
	BELOW("tmp/xauth_", "what speaks for your session"),
	BEGIN(".serverauth.", "what speaks for your session"),
	NAME("xauthority", "what speaks for your session"),
	/* iceauth(1) */
	NAME(".iceauthority", "what speaks for your session"),
	/* pulse-client.conf(5) */
	PLACE(".config/pulse/cookie", "what speaks for your session"),
	NAME(".pulse-cookie", "what speaks for your session"),
	/* XDG Base Directory Specification: sockets, and files such as those of
	 * containers-auth.json(5) */
	SYSTEM("/run/user", "what speaks for your session"),
	/* krb5(7): FILE: and DIR: caches */
	BEGIN("krb5cc", "what speaks for your session"),

	SYSTEM("/proc", "secrets of the system"),
	SYSTEM("/run/secrets", "secrets of the system"),
	SYSTEM("/run/credentials", "secrets of the system"),
	SYSTEM("/etc/shadow", "secrets of the system"),
	SYSTEM("/etc/gshadow", "secrets of the system"),
	SYSTEM("/etc/ssl/private", "secrets of the system"),
	SYSTEM("/etc/letsencrypt", "secrets of the system"),
	/* the manuals: wg-quick(8), openvpn(8), nm-settings-keyfile(5), netplan(5), krb5.keytab by its name */
	SYSTEM("/etc/wireguard", "secrets of the system"),
	SYSTEM("/etc/openvpn", "secrets of the system"),
	SYSTEM("/etc/networkmanager/system-connections", "secrets of the system"),
	SYSTEM("/etc/netplan", "secrets of the system"),
};
/* clang-format on */
const size_t sensitive_table_len = ARRAY_SIZE(sensitive_table);
