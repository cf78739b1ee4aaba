/* SPDX-License-Identifier: Apache-2.0 */
/* National numbers of telephones, and streets, as people of several countries write them; and what
 * has as many digits, or words, and is neither. */
#include "common/cleanup.h"
#include "tests/support/gate_texts.h"
#include "vessel/gate/gate.h"
#include "vessel/gate/valid/valid.h"
#include <criterion/criterion.h>

TestSuite(gate_people, .init = begin, .fini = end, .timeout = 60);

#define N(a) (sizeof(a) / sizeof((a)[0]))

static bool has(enum gate_family f)
{
	for (size_t i = 0; i < r.n; i++)
		if (r.finding[i].family == f)
			return true;
	return false;
}

/* In the form's place of %s. */
static void scan_in(const char *form, const char *what)
{
	cleanup_buf struct buf b = new_buf();
	const char *at = strstr(form, "%s");

	buf_add(&b, form, (size_t)(at - form));
	buf_adds(&b, what);
	buf_adds(&b, at + 2);
	(void)score_of(b.data, b.len);
}

Test(gate_people, other_numbers_are_no_telephones)
{
	static const char *const fine[] = {
		"on 02-03-2021 and 01/02/2021, 2021-11-29 10:20:30",
		"0123456789 and 01 02 03 04 05",
		"U+FDBB => 0643 0645 0645",
		"[*0328.0020.0004][.9B96.0020.0004]",
		"ZIP 01234-5678, ISBN 0-306-40615-2",
		"0x0800 123 4567 is none, v0.12.3456 neither",
		"dll callback (12/23/2005 Ale), Tels 2001-2009",
		"offset 4096 01 23 45 67 89 ab cd ef",
		"1764380000 1764380000000 20261129014530",
		"check_call([\"truncate\", \"-s\", \"5368709120\"])",
		"a hotel with 1234567890 rooms",
		"usr/share/phone/20-1234567.gz, telephone-3141592.patch",
		"contact: 20261129, fax 1998-2004",
	};

	for (size_t i = 0; i < N(fine); i++) {
		(void)score_of(fine[i], strlen(fine[i]));
		cr_expect_not(has(GATE_PHONE), "%s: %s", fine[i],
			      r.n ? r.finding[0].rule : "");
	}
}

Test(gate_people, other_words_are_no_streets)
{
	static const char *const fine[] = {
		"12 Monkeys and 3 Python modules in 2 files",
		"Engineering 101, Monitoring 2, String 5, Offering 12",
		"see section 3. Way to go; 10 March Street parties",
		"the boulevard of broken dreams, en route to it",
		"RFC 2616 Section 14 and Table 3 Drive letters",
		"address = 0x7f00, address: 127.0.0.1:8080, street = None",
		"address: &str, 16 bytes; the Address: a label. Version 12",
		"we live in interesting times, 2 of them on Port 80",
		"Route handlers 12, Place holders 3, Passage retrieval 2",
	};

	for (size_t i = 0; i < N(fine); i++) {
		(void)score_of(fine[i], strlen(fine[i]));
		cr_expect_not(has(GATE_ADDRESS), "%s: %s", fine[i],
			      r.n ? r.finding[0].rule : "");
	}
}

Test(gate_people, telephones_as_at_home)
{
	static const char *const numbers[] = {
		/* United States */
		"(212) 664-7665",
		"212-664-7665",
		"1-212-664-7665",
		"001-212-664-7665x123",
		"212.664.7665 ext. 12",
		/* Britain, Germany, France, the Netherlands */
		"020 7183 8750",
		"01632 410274",
		"07700 412345",
		"(01632) 410274",
		"(0161)4960274",
		"030 901820",
		"0221/123476",
		"089-3216804",
		"(0711) 2168234",
		"01 42 68 53 00",
		"06.12.43.56.78",
		"020-6243111",
		"06 24311198",
		"0176 1234 5678",
		/* Brazil, Russia, Turkey, China, Japan, Korea, Indonesia */
		"(11) 98765-4321",
		"(21) 3456-7890",
		"8 (495) 123-45-67",
		"0 (532) 123 45 67",
		"138 1234 5687",
		"13812345687",
		"010-6552-9988",
		"03-3580-3311",
		"090-1234-5687",
		"010-2345-6789",
		"0812-3456-7809",
		/* Australia, South Africa, Sweden, Nigeria */
		"0412 345 687",
		"(02) 9374 4000",
		"011 325 4100",
		"08-123 456 78",
		"0803 123 4567",
	};

	for (size_t i = 0; i < N(numbers); i++) {
		scan_in("please ring %s tomorrow\n", numbers[i]);
		cr_expect(has(GATE_PHONE), "%s", numbers[i]);
		cr_expect_eq(r.verdict, GATE_ANONYMISE, "%s: %f", numbers[i], r.score);
	}
}

Test(gate_people, digits_beside_a_word_that_says_so)
{
	static const char *const forms[] = {
		"my phone number is %s.",
		"Tel.: %s",
		"fax %s",
		"call me at %s, thanks",
		"{\"mobile\": \"%s\"}",
		"Handy %s",
		"WhatsApp: %s",
		"T\xc3\xa9l. %s",
		"you can reach the office on %s",
	};
	static const char *const numbers[] = {
		"2126647665",	"612 345 698", "98765 43210", "0162 4102748",
		"55 1234 5698", "501826330",   "622-4738",    "36 71 24 58"};

	for (size_t i = 0; i < N(forms); i++)
		for (size_t k = 0; k < N(numbers); k++) {
			scan_in(forms[i], numbers[k]);
			cr_expect(has(GATE_PHONE), "%s in %s", numbers[k], forms[i]);
		}
}

Test(gate_people, streets)
{
	static const char *const streets[] = {
		"12 Maple Street",
		"350 5th Avenue",
		"1600 Pennsylvania Ave NW",
		"221B Baker Street",
		"8 Saint Andrews Crescent",
		"4711 Kuhn Throughway",
		"77 N. Michigan Blvd.",
		"Hauptstra\xc3\x9f"
		"e 5",
		"Hauptstr. 12a",
		"Heinz-M\xc3\xbcller-Weg 3",
		"Am Sandtorkai 50",
		"Kurf\xc3\xbcrstendamm 231",
		"Prinsengracht 263",
		"Kalverstraat 92",
		"12, rue de Rivoli",
		"3 bis avenue Victor Hugo",
		"Calle de Alcal\xc3\xa1 42",
		"Avda. Diagonal 640",
		"Via Garibaldi, 12",
		"Piazza San Marco 1",
		"Rua Augusta 1508",
		"ul. Marsza\xc5\x82kowska 10/16",
		"Drottninggatan 71",
		"68 Chemin des Vignes",
		"9 Rue du Lac",
		"Kossuth Lajos utca 12",
		"Slovenska cesta 55",
		"Karl Johans gate 22",
		"Mannerheimintie 5",
		"Ba\xc4\x9f"
		"dat Cad. 17",
		"Aleea Rozelor 3",
		"Jalan Merdeka No. 7",
		"\xd0\xb2\xd1\x83\xd0\xbb. "
		"\xd0\xa1\xd0\xb0\xd0\xb4\xd0\xbe\xd0\xb2\xd0\xb0, 5",
		"\xe4\xb8\xad\xe5\xb1\xb1\xe8\xb7\xaf"
		"12\xe5\x8f\xb7",
		"\xd1\x83\xd0\xbb. \xd0\x9b\xd0\xb5\xd1\x81\xd0\xbd\xd0\xb0\xd1\x8f, "
		"\xd0\xb4. 12",
	};

	for (size_t i = 0; i < N(streets); i++) {
		scan_in("please send it to %s.\n", streets[i]);
		cr_expect(has(GATE_ADDRESS), "%s", streets[i]);
		scan_in("I live at %s.\n", streets[i]);
		cr_expect(has(GATE_ADDRESS), "%s", streets[i]);
	}
}

/* In a form that no rule knows by itself. */
Test(gate_people, names_and_numbers_beside_a_word_that_says_so)
{
	static const char *const forms[] = {
		"Address: %s",
		"street = \"%s\"",
		"{\"name\": \"x\", \"street\": \"%s\"}",
		"she lives at %s, I think",
		"Anschrift: %s",
		"Direcci\xc3\xb3n: %s",
		"street_address=%s",
	};
	static const char *const streets[] = {
		"24 Bonnie Doon",
		"8294 Faure du Chat",
		"Nov\xc3\xa1 Ves 294",
		"Dun Laoghaire Upper 5b",
		"\xd9\x86\xd9\x88\xd9\x81\xd9\x84 12",
	};

	for (size_t i = 0; i < N(forms); i++)
		for (size_t k = 0; k < N(streets); k++) {
			scan_in(forms[i], streets[k]);
			cr_expect(has(GATE_ADDRESS), "%s in %s", streets[k], forms[i]);
			cr_expect_neq(r.verdict, GATE_REFUSE, "%s: %f", streets[k],
				      r.score);
		}
}

Test(gate_people, groups_of_a_telephone)
{
	static const struct {
		const char *number;
		bool is_one;
	} groups[] = {
		{"030 901820", true},	   {"01 42 68 53 00", true},
		{"01234-5678", false},	   {"01 02 03 04 05", false},
		{"02-03-2021", false},	   {"0123 456789", false},
		{"0643 0645 0645", false}, {"030", false},
		{"030 1", false},	   {"030 1234567890123", false},
	};

	for (size_t i = 0; i < N(groups); i++)
		cr_expect_eq(
			valid_phone_groups(groups[i].number, strlen(groups[i].number)),
			groups[i].is_one, "%s", groups[i].number);
}
