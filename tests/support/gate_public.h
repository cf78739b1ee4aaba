/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the gate: certificates and public keys as openssl, ssh-keygen, gpg, age and minisign write them. Their private
 * halves are gone. */
#ifndef LYCH_TESTS_SUPPORT_GATE_PUBLIC_H
#define LYCH_TESTS_SUPPORT_GATE_PUBLIC_H

static const struct {
	const char *name, *text;
} public_things[] = {
	{"rsa_certificate",
	 "-----BEGIN CERTIFICATE-----\n"
	 "MIIDozCCAougAwIBAgIUChn46JRVlBEds+JK4ZiRA3ulHnYwDQYJKoZIhvcNAQEL\n"
	 "BQAwYTELMAkGA1UEBhMCREUxEDAOBgNVBAoMB0V4YW1wbGUxFzAVBgNVBAMMDmNh\n"
	 "LmV4YW1wbGUubmV0MScwJQYJKoZIhvcNAQkBFhhjYS5hZG1pbkBseWNoZ2F0ZS1j\n"
	 "YS5uZXQwHhcNMjYxMTI5MDE1ODU2WhcNMzYxMTI2MDE1ODU2WjBhMQswCQYDVQQG\n"
	 "EwJERTEQMA4GA1UECgwHRXhhbXBsZTEXMBUGA1UEAwwOY2EuZXhhbXBsZS5uZXQx\n"
	 "JzAlBgkqhkiG9w0BCQEWGGNhLmFkbWluQGx5Y2hnYXRlLWNhLm5ldDCCASIwDQYJ\n"
	 "KoZIhvcNAQEBBQADggEPADCCAQoCggEBAMc+Y2xectHTmlt3BfagEpW1TfCcCkCw\n"
	 "aLUgMLaIk0uAFtNyWpl0ValbQjHeavXn9XWVLDHuYMezlVKksAR0dPquQktsMGEI\n"
	 "fuCnxR67aOMkpERnQfal4YbD7TpSfT9GoYeDtbo98JsjSqFhPE/cqI/WcucIxyjW\n"
	 "Uvyi4Eh7R6dPQ7edLwzeJZziA/QDEyrwKMlIOQ5ZhbSagvFJbfvCs9KhPFyho7Xh\n"
	 "LgNCD4B0CM/lm8ZBUuduBhGM6k2MINgrKTqnZV1ipA/zxX3zfT4inHQrq9Kb0Fn5\n"
	 "BjjvwXgNr22nF/eVphBKfnmihNuoj7QpllRtPUd6oa/8VobwzuqHEPECAwEAAaNT\n"
	 "MFEwHQYDVR0OBBYEFGKCiyE0OCR0y8mWjvrKVOkef3inMB8GA1UdIwQYMBaAFGKC\n"
	 "iyE0OCR0y8mWjvrKVOkef3inMA8GA1UdEwEB/wQFMAMBAf8wDQYJKoZIhvcNAQEL\n"
	 "BQADggEBAI20Dsi4Gowz/vhcRAUopS847zm9t38Sv66hw533ip92Qvs7jZ+ga0nP\n"
	 "zRk6XMa9Rkb7JPbLa7m8N+H7Xthtl9QRgvhX59qwsZdmTbY4zNQp3nKt6EIzcSxd\n"
	 "935Re+CFDPDHvZITf4laZs1C6Ze/r3AwhBiHJI1Qrvnd3lPQaV4Tt2lkcKLe4VnQ\n"
	 "OTp+K9btA39bBHU4z0+hh6aBrJI+w7cyMH5Q18/BWvBKWn3yGM5s2rAMDoO2i6Os\n"
	 "zRUSOpEW62W0Nhs2MZ1TXaSNlG09+RhearNMncY8QCfcX28mP43X+kWDwGOsHDn4\n"
	 "r1yHlhEhX02X/izAwE0kn44zaHdYokg=\n"
	 "-----END CERTIFICATE-----\n"},
	{"ec_certificate",
	 "-----BEGIN CERTIFICATE-----\n"
	 "MIIBizCCATGgAwIBAgIUGOQcszcwQZm3htJLe6X40sfdeqwwCgYIKoZIzj0EAwIw\n"
	 "GzEZMBcGA1UEAwwQaG9zdC5leGFtcGxlLm5ldDAeFw0yNjExMjkwMTU4NTZaFw0y\n"
	 "NjEyMjkwMTU4NTZaMBsxGTAXBgNVBAMMEGhvc3QuZXhhbXBsZS5uZXQwWTATBgcq\n"
	 "hkjOPQIBBggqhkjOPQMBBwNCAATZPjfspNqqsbPxbG+XRLwSDa285IuttAUdqVQH\n"
	 "tCB6AztIELiAydUNfOxWH7qVplZ2xXPxVLndZiOj1qk9XDMio1MwUTAdBgNVHQ4E\n"
	 "FgQUhNfYrN/nZ+eRpX5PhzJT9Ajc20UwHwYDVR0jBBgwFoAUhNfYrN/nZ+eRpX5P\n"
	 "hzJT9Ajc20UwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiAV4fsv\n"
	 "16AAIBrfBYjr/fxlutOwrtz9D1d4FcwKF0/ZWQIhAK9GfCv0jtIeVMt1AQUrQhJ4\n"
	 "EZhcrY9qJgvHfqinIJHJ\n"
	 "-----END CERTIFICATE-----\n"},
	{"rsa_spki", "-----BEGIN PUBLIC KEY-----\n"
		     "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAxz5jbF5y0dOaW3cF9qAS\n"
		     "lbVN8JwKQLBotSAwtoiTS4AW03JamXRVqVtCMd5q9ef1dZUsMe5gx7OVUqSwBHR0\n"
		     "+q5CS2wwYQh+4KfFHrto4ySkRGdB9qXhhsPtOlJ9P0ahh4O1uj3wmyNKoWE8T9yo\n"
		     "j9Zy5wjHKNZS/KLgSHtHp09Dt50vDN4lnOID9AMTKvAoyUg5DlmFtJqC8Ult+8Kz\n"
		     "0qE8XKGjteEuA0IPgHQIz+WbxkFS524GEYzqTYwg2CspOqdlXWKkD/PFffN9PiKc\n"
		     "dCur0pvQWfkGOO/BeA2vbacX95WmEEp+eaKE26iPtCmWVG09R3qhr/xWhvDO6ocQ\n"
		     "8QIDAQAB\n"
		     "-----END PUBLIC KEY-----\n"},
	{"rsa_pkcs1", "-----BEGIN RSA PUBLIC KEY-----\n"
		      "MIIBCgKCAQEAxz5jbF5y0dOaW3cF9qASlbVN8JwKQLBotSAwtoiTS4AW03JamXRV\n"
		      "qVtCMd5q9ef1dZUsMe5gx7OVUqSwBHR0+q5CS2wwYQh+4KfFHrto4ySkRGdB9qXh\n"
		      "hsPtOlJ9P0ahh4O1uj3wmyNKoWE8T9yoj9Zy5wjHKNZS/KLgSHtHp09Dt50vDN4l\n"
		      "nOID9AMTKvAoyUg5DlmFtJqC8Ult+8Kz0qE8XKGjteEuA0IPgHQIz+WbxkFS524G\n"
		      "EYzqTYwg2CspOqdlXWKkD/PFffN9PiKcdCur0pvQWfkGOO/BeA2vbacX95WmEEp+\n"
		      "eaKE26iPtCmWVG09R3qhr/xWhvDO6ocQ8QIDAQAB\n"
		      "-----END RSA PUBLIC KEY-----\n"},
	{"ec_spki", "-----BEGIN PUBLIC KEY-----\n"
		    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE2T437KTaqrGz8Wxvl0S8Eg2tvOSL\n"
		    "rbQFHalUB7QgegM7SBC4gMnVDXzsVh+6laZWdsVz8VS53WYjo9apPVwzIg==\n"
		    "-----END PUBLIC KEY-----\n"},
	{"ed25519_spki", "-----BEGIN PUBLIC KEY-----\n"
			 "MCowBQYDK2VwAyEAtWOwDlWLHbmM9kTm/zNAkpHE2NhlMCcdxd7Lk2kTzlw=\n"
			 "-----END PUBLIC KEY-----\n"},
	{"ssh_ed25519", "ssh-ed25519 "
			"AAAAC3NzaC1lZDI1NTE5AAAAIG2GDwAHrM7+hlRn8PDU/"
			"aXIjkPFE27Feoh5K6ywCIak me@laptop\n"},
	{"ssh_rsa",
	 "ssh-rsa "
	 "AAAAB3NzaC1yc2EAAAADAQABAAABAQC3IOQG7oBXmFq9R5mz7o0azQxol9qERQWbwLTVAihWQAdhYpM"
	 "+8DdB+1fm9VVCmgJMvsmeoNywsL/OL1VhlUlM4GQtS9mm/"
	 "Iqun+WpPJSxRK9Rfe0kb8mZUsGjnGWwb5x1Cf9QLqqZkBQ5IdX+"
	 "88t3Ok29EW1XCGApTsTAJIGDqEYFN6SrYAw7A8+FRAEvnjX6yWUsTt45sUE/"
	 "awYQLSO6qUYDxOLj9+zFAXTi85xFG8+F0ecykjy3Gujlp0l81J3pLGJj2f3Bi6MQtl/w/"
	 "pJOBOZOK4K0+agNPMSQN+8xMr2GeTBQ2mWCWZOuBQ34IBhPvAZ8RJ+IKjrh/6E5/1Y/ \n"},
	{"ssh_ecdsa",
	 "ecdsa-sha2-nistp256 "
	 "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBCYCJodRv5PUddD9kPQTcZF1TyS"
	 "5uXu4ISF2O84vlWe4/OEl11GzLu2X/ZxlYSySv+MrygGZkvS3r4eof+cuXJs= ci\n"},
	{"pgp_ed25519",
	 "-----BEGIN PGP PUBLIC KEY BLOCK-----\n"
	 "\n"
	 "mDMEawuG4BYJKwYBBAHaRw8BAQdAH3oVs2VidiJ1T2iPIsecwaKbLPk9AQtHu+OQ\n"
	 "vMH1TWW0CFRlc3QgS2V5iJAEExYIADgWIQRAQD6alIqeeklojK14YkvyxYXJBgUC\n"
	 "awuG4AIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAKCRB4YkvyxYXJBhcQAP0V\n"
	 "iIBK00EJoH2hAcwFOcKCrZGPqxWJrMfP/pi6aLHNHAEA+N6AblenLPRZotkslcLx\n"
	 "PmvCvArgx4XI9xQPhDfRtgM=\n"
	 "=dNY9\n"
	 "-----END PGP PUBLIC KEY BLOCK-----\n"},
	{"pgp_rsa", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n"
		    "\n"
		    "mQENBGsLhuEBCACfQ9AuzkpZW/yyFXAkdNjVEX+gsH/6t8runoTHOXDdh84nqqVX\n"
		    "LZ7ArLgF+ZHugPI6ql2MwpM5Jj5uFBhI13Dzqy/dvAi7yQnhhK0JTbocWCB9MMjL\n"
		    "3tEQ606LCOE1Nfit+qHMgrpUTDykNLowtrh6+KYky22N1rNGa1YIjEFBocSvKBDU\n"
		    "eg2AWLBqUzxUR9AJhf0lkdA6Wj4El96K4CPS/K4V1oatiGa0q/26tpHcywa7xpq+\n"
		    "bAt6n1eLD0BL1KfMLFfZsb9pjt4W5dxLnNjxkhK2Sh01uRh0jAilCY6yMgpHLF/V\n"
		    "7DDO6blAWpSe+ped/5PZPtl6v/yqmFZcR9B9ABEBAAG0CU90aGVyIEtleYkBTgQT\n"
		    "AQoAOBYhBCFl3Ncf20mPx/YFb6ZA0+amCrCQBQJrC4bhAhsDBQsJCAcCBhUKCQgL\n"
		    "AgQWAgMBAh4BAheAAAoJEKZA0+amCrCQYQsH/iFCESQt9bSIfdLIWSEkoSPq3vmA\n"
		    "b3f8RqchZ3aDAFGZLf2+yxOPQ8VgPttm6cUmXqlEv4lwui8Uhp7nMOMZCCMA+mDM\n"
		    "VOOWihXqGbjv7qgCahI3bjtObC/PFiCc+HX1fNYPfnjWAILI0rVaxeRGVV+xUTJJ\n"
		    "MWxUwPcuxw3vOSNi0jIrZE0sNS0wGHbettvKepOaBC8Pq/SBIfkaL8WdqdvL+vHm\n"
		    "I8dOBO8nTYsjKZyVh/i236tze/hepejsxWnrsg9AR069vkomNePRtM88/6it4VKd\n"
		    "Gv7cmQRYf5LezViVTm3v/hqn8DxNgLzpj+6RD6esEP423A4me9P8k7HGRV8=\n"
		    "=m0pI\n"
		    "-----END PGP PUBLIC KEY BLOCK-----\n"},
	{"age", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p\n"},
	{"minisign", "untrusted comment: minisign public key E7620F1842B4E81F\n"
		     "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\n"},
};

#endif
