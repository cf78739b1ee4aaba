/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * The rows of sensitive.h, by what is kept there. What a row says is shown to people: "keeps
 * secrets: SSH keys". `make docs` afterwards.
 */
#include "common/proto/sensitive.h"

#include "common/attr.h"

#define NAME(name, what) {SENSITIVE_NAME, name, what}
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

	NAME(".gnupg", "OpenPGP keys"),
	NAME(".gpg", "OpenPGP keys"),
	NAME("secring.gpg", "OpenPGP keys"),

	NAME("private_key", "key material"),
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
	NAME("wallet.dat", "key material"),
	PLACE(".config/solana", "key material"),

	BEGIN(".env", "the environment of a program"),
	END(".env", "the environment of a program"),
	NAME(".dev.vars", "the environment of a program"),

	NAME("credentials", "credentials"),
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

	NAME(".claude.json", "credentials of agents"),
	PLACE(".codex/auth.json", "credentials of agents"),
	PLACE(".local/share/opencode/auth.json", "credentials of agents"),
	PLACE(".config/cursor/auth.json", "credentials of agents"),
	PLACE(".pi/agent/auth.json", "credentials of agents"),
	PLACE(".factory/auth.json", "credentials of agents"),
	NAME("oauth_creds.json", "credentials of agents"),
	PLACE(".config/github-copilot", "credentials of agents"),
	PLACE(".config/io.datasette.llm", "credentials of agents"),
	PLACE(".cache/huggingface/token", "credentials of agents"),
	PLACE(".cache/huggingface/stored_tokens", "credentials of agents"),
	NAME(".huggingface", "credentials of agents"),
	NAME(".kaggle", "credentials of agents"),

	NAME(".git-credentials", "credentials of git servers"),
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

	NAME(".netrc", "passwords"),
	NAME("_netrc", "passwords"),
	NAME(".authinfo", "passwords"),
	NAME(".authinfo.gpg", "passwords"),
	NAME(".pgpass", "passwords"),
	NAME(".pg_service.conf", "passwords"),
	NAME(".my.cnf", "passwords"),
	NAME(".mylogin.cnf", "passwords"),
	NAME(".cvspass", "passwords"),
	NAME(".smbcredentials", "passwords"),
	NAME(".msmtprc", "passwords"),
	NAME(".fetchmailrc", "passwords"),
	NAME(".erlang.cookie", "passwords"),
	NAME(".password-store", "passwords"),
	PLACE(".config/op", "passwords"),
	PLACE(".local/share/keyrings", "passwords"),
	PLACE(".local/share/kwalletd", "passwords"),

	NAME(".bash_history", "what was typed"),
	NAME(".zsh_history", "what was typed"),
	NAME(".psql_history", "what was typed"),
	NAME(".mysql_history", "what was typed"),
	NAME(".python_history", "what was typed"),
	NAME(".node_repl_history", "what was typed"),

	NAME(".mozilla", "mail and sessions of a browser"),
	NAME(".thunderbird", "mail and sessions of a browser"),
	PLACE(".config/chromium", "mail and sessions of a browser"),
	PLACE(".config/google-chrome", "mail and sessions of a browser"),
	PLACE(".config/bravesoftware", "mail and sessions of a browser"),
	PLACE(".config/microsoft-edge", "mail and sessions of a browser"),

	SYSTEM("/proc", "secrets of the system"),
	SYSTEM("/run/secrets", "secrets of the system"),
	SYSTEM("/run/credentials", "secrets of the system"),
	SYSTEM("/etc/shadow", "secrets of the system"),
	SYSTEM("/etc/gshadow", "secrets of the system"),
	SYSTEM("/etc/ssl/private", "secrets of the system"),
	SYSTEM("/etc/letsencrypt", "secrets of the system"),
};
/* clang-format on */
const size_t sensitive_table_len = ARRAY_SIZE(sensitive_table);
