/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of many issuers, made from their forms: each is found by its own rule, and what only has
 * the form is none. */
#define GATE_TEXTS_DEADLINE_USEC (600 * USEC_PER_SEC)
#include "common/cleanup.h"
#include "common/mem.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include <criterion/criterion.h>

TestSuite(gate_vendors, .init = begin, .fini = end, .timeout = 120);

#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define SMALL "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* %a7: seven letters and digits; %A capitals, %l small ones, %c letters alone, %d digits, %h
 * and %H hexadecimal, %b of base64, %u of base64url; %g: a UUID. */
static const char *const alphabets[128] = {
	['a'] = CAPITALS SMALL DIGITS,
	['A'] = CAPITALS DIGITS,
	['l'] = SMALL DIGITS,
	['c'] = CAPITALS SMALL,
	['d'] = DIGITS,
	['h'] = "0123456789abcdef",
	['H'] = "0123456789ABCDEF",
	['b'] = CAPITALS SMALL DIGITS "+/",
	['u'] = CAPITALS SMALL DIGITS "-_",
};

static const struct {
	const char *rule, *form;
} tokens[] = {
	{"alibaba_key", "LTAI%a20"},
	{"tencent_key", "AKID%a32"},
	{"volcengine_key", "AKLT%a44"},
	{"baidu_key", "bce-v3/ALTAK-%a21/%h40"},
	{"jdcloud_key", "JDC_%A28"},
	{"yandex_key", "AQVN%u36"},
	{"yandex_iam", "t1.%u200.%u86"},
	{"yandex_oauth", "y0_%u58"},
	{"yandex_static", "YCAJE%u35"},
	{"scaleway_key", "SCW%A17"},
	{"do_spaces", "DO00%A16"},
	{"backblaze", "K005%b27"},
	{"azure_marked", "%a52JQQJ99%a26"},
	{"azure_search", "%a42AzSeB%a5"},
	{"azure_function", "%u44AzFu%u5Q=="},
	{"azure_named", "%b76+ASt%b5Q=="},
	{"teams_webhook",
	 "https://x.webhook.office.com/webhookb2/%g@%g/IncomingWebhook/%h32/%g"},
	{"aws_session", "IQoJb3JpZ2luX2Vj%b300"},
	{"aws_bedrock_short", "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t%b200"},
	{"amazon_mws", "amzn.mws.%g"},
	{"amazon_client", "amzn1.oa2-cs.v1.%h64"},
	{"amazon_login", "Atza|%u300"},
	{"google_refresh", "1//0%u100"},
	{"google_fcm", "AAAA%u7:%u140"},
	{"nvidia", "nvapi-%u64"},
	{"model_key", "sk-%h32"},
	{"elevenlabs", "sk_%h48"},
	{"fireworks", "fw_%a24"},
	{"together", "tgp_v1_%u43"},
	{"cerebras", "csk-%l48"},
	{"langsmith", "lsv2_pt_%h32_%h10"},
	{"langfuse", "sk-lf-%g"},
	{"wandb", "wandb_v1_%a77"},
	{"pinecone", "pcsk_%a6_%a63"},
	{"jina", "jina_%h32%u28"},
	{"tavily", "tvly-dev-%a32"},
	{"firecrawl", "fc-%h32"},
	{"e2b", "e2b_%h40"},
	{"apify", "apify_api_%a36"},
	{"llamacloud", "llx-%a48"},
	{"huggingface_org", "api_org_%c34"},
	{"helicone", "sk-helicone-%l7-%l7-%l7-%l7"},
	{"circleci", "CCIPAT_%a22_%h40"},
	{"sourcegraph", "sgp_%h16_%h40"},
	{"netlify", "nfp_%a36"},
	{"vercel", "vcp_%a56"},
	{"grafana_cloud", "glc_%b120"},
	{"grafana_old", "eyJrIjoi%a80"},
	{"dynatrace", "dt0c01.%A24.%A64"},
	{"onepassword_service", "ops_eyJ%b300"},
	{"onepassword_connect", "opvt_%a60"},
	{"newrelic_more", "NRII-%u32"},
	{"clojars", "CLOJARS_%l60"},
	{"prefect", "pnu_%a36"},
	{"readme", "rdme_%l70"},
	{"scalingo", "tk-us-%u48"},
	{"infracost", "ico-%a32"},
	{"settlemint", "sm_pat_%a16"},
	{"openshift", "sha256~%u43"},
	{"octopus", "API-%A26"},
	{"harness", "pat.%u22.%h24.%a20"},
	{"jfrog_reference", "cmVmdGtu%a56"},
	{"snyk", "snyk_uat.%h8.%u100"},
	{"launchdarkly", "sdk-%g"},
	{"mapbox", "sk.eyJ%u70.%u22"},
	{"honeybadger", "hbp_%a36"},
	{"honeycomb", "hcaik_%l58"},
	{"logfire", "pylf_v1_us_%a43"},
	{"axiom", "xaat-%g"},
	{"posthog", "phx_%a43"},
	{"neon", "napi_%l64"},
	{"render", "rnd_%a28"},
	{"fly_machine", "fo1_%u43"},
	{"cockroach", "CCDB1_%a22_%a40"},
	{"confluent", "cflt%b60"},
	{"infisical", "st.%h24.%h32.%h32"},
	{"bitwarden", "0.%g.%a30:%b22=="},
	{"vault_old", "s.%a24"},
	{"packagist", "packagist_out_%h68"},
	{"jsr", "jsrp_%a40"},
	{"wakatime", "waka_%g"},
	{"cursor", "crsr_%h64"},
	{"convex", "prod:happy-animal-123|%b60"},
	{"checkly", "cu_%h32"},
	{"adafruit", "aio_%a28"},
	{"discord_mfa", "mfa.%u84"},
	{"twitter_bearer", "AAAAAAAAAAAAAAAAAAAAA%a90"},
	{"instagram", "IGQV%a120"},
	{"roblox", "_|WARNING:-DO-NOT-SHARE-THIS.--Sharing-this-will-allow-someone-to-"
		   "log-in-as-you-and-to-steal-your-ROBUX-and-items.|_%A200"},
	{"lichess", "lip_%a24"},
	{"linkedin", "WPL_AP1.%a20"},
	{"twitch_chat", "oauth:%l30"},
	{"lark_webhook", "https://open.feishu.cn/open-apis/bot/v2/hook/%g"},
	{"wecom_webhook", "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=%g"},
	{"zapier_hook", "https://hooks.zapier.com/hooks/catch/1827364/%l7"},
	{"brevo", "xkeysib-%h64-%a16"},
	{"shippo", "shippo_live_%h40"},
	{"easypost", "EZAK%l54"},
	{"duffel", "duffel_live_%u43"},
	{"flutterwave", "FLWSECK-%h32-X"},
	{"frameio", "fio-u-%u64"},
	{"live_key", "live_%h35"},
	{"intra42", "s-s4t2ud-%h64"},
	{"maxmind", "%a6_%a29_mmk"},
	{"plaid", "access-production-%g"},
	{"square_access", "EAAA%u60"},
	{"typeform", "tfp_%u59"},
	{"asana", "1/%d16:%h32"},
	{"resend", "re_%a8_%a24"},
	{"mailersend", "mlsn.%h64"},
	{"paddle", "pdl_live_apikey_%l26_%a22_%a3"},
	{"polar", "polar_pat_%a43"},
	{"razorpay", "rzp_live_%a14"},
	{"rapidapi", "%h10msh%h15p%h6jsn%h12"},
	{"hubspot", "pat-na1-%g"},
	{"intercom", "dG9rO%b54"},
	{"salesforce", "00D%a15!%a96"},
	{"klaviyo", "pk_%h34"},
	{"trello", "ATTA%h72"},
	{"clickup", "pk_%d8_%A32"},
	{"ebay", "v^1.1#i^1#I^3#r^0#p^3#f^0#t^%b80"},
	{"telnyx", "KEY%H32_%a22"},
	{"onesignal", "os_v2_app_%l103"},
	{"ntfy", "tk_%l29"},
	{"stytch", "secret-live-%u36"},
	{"authress", "sc_%l20.%l5.acc-%l12.%b40"},
	{"adobe", "p8e-%h32"},
	{"okta", "SSWS 00%u40"},
	{"gitlab_more", "glffct-%u20"},
	{"slack_more", "xoxa-2-%a40"},
	{"minisign_secret", "RWRTY0Iy%b200"},
};
#define N_TOKENS (sizeof(tokens) / sizeof(tokens[0]))

static uint32_t seed = 11;

static uint32_t draw(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)(seed >> 4) * n) >> 28);
}

/* only: that letter in place of all that is drawn; 0: drawn. */
static void put_letters(struct buf *b, const char *alphabet, size_t n, char only)
{
	for (size_t i = 0; i < n; i++)
		buf_addc(b, only ? only : alphabet[draw((uint32_t)strlen(alphabet))]);
}

static void put_uuid(struct buf *b, char only)
{
	static const size_t groups[] = {8, 4, 4, 4, 12};

	for (size_t i = 0; i < 5; i++) {
		if (i)
			buf_addc(b, '-');
		put_letters(b, alphabets['h'], groups[i], only);
	}
}

static void put_form(struct buf *b, const char *form, char only)
{
	while (*form) {
		char *end;
		const char *alphabet;

		if (*form != '%') {
			buf_addc(b, *form++);
			continue;
		}
		alphabet = alphabets[form[1] & 127];
		if (form[1] == 'g') {
			put_uuid(b, only);
			form += 2;
			continue;
		}
		put_letters(b, alphabet, strtoul(form + 2, &end, 10), only);
		form = end;
	}
}

static bool has_rule(const char *rule)
{
	for (size_t i = 0; i < r.n; i++)
		if (strcmp(r.finding[i].rule, rule) == 0)
			return true;
	return false;
}

Test(gate_vendors, what_only_has_the_form_is_none)
{
	static const char fill[] = {'x', '0', 'a', 'A'};

	for (size_t i = 0; i < N_TOKENS; i++)
		for (size_t k = 0; k < sizeof(fill); k++) {
			cleanup_buf struct buf b = new_buf();

			buf_adds(&b, "see ");
			put_form(&b, tokens[i].form, fill[k]);
			buf_adds(&b, " there\n");
			(void)score_of(b.data, b.len);
			cr_expect_not(has_rule(tokens[i].rule), "%s", b.data);
		}
}

/* Names of functions and of files that begin like a token. */
Test(gate_vendors, names_are_none)
{
	static const char *const fine[] = {
		"rnd_generateSomethingFromTheSeedValue",
		"test_thatTheParserRefusesWhatIsTooLongForIt",
		"nfp_computeTheNumberOfFreePagesInZone",
		"pk_convertPublicKeyToSubjectPublicKeyInfo",
		"s.getElementsByTagNameAndId",
		"fw_loadTheImageFromTheDiskNow",
		"live_migrationOfTheVirtualMachineIsDone2",
		"tk_textInsertModeWithTheCaret",
		"key_0000000000000000000000000000000000000000000000000000000000000000",
		"CCIPAT_0000000000000000000000",
	};

	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		cr_expect_lt(score_of(fine[i], strlen(fine[i])), 0.4, "%s: %f %s",
			     fine[i], r.score, r.n ? r.finding[0].rule : "");
}

Test(gate_vendors, each_is_found_by_its_own_rule)
{
	cr_expect_geq(N_TOKENS, 60);
	for (size_t i = 0; i < N_TOKENS; i++)
		for (unsigned k = 0; k < 4; k++) {
			cleanup_buf struct buf b = new_buf();

			buf_adds(&b, "see ");
			put_form(&b, tokens[i].form, 0);
			buf_adds(&b, " there\n");
			cr_expect_eq(score_of(b.data, b.len), 1.0, "%s: %f", b.data,
				     r.score);
			cr_expect(has_rule(tokens[i].rule), "%s: %s, not %s", b.data,
				  r.n ? r.finding[0].rule : "nothing", tokens[i].rule);
		}
}
