// SPDX-License-Identifier: Apache-2.0
// Personal data by the npm packages @faker-js/faker and libphonenumber-js, which are installed where this is copied to:
// one line of JSON for each, {kind, group, value}. The group (a locale, a country, an issuer) decides in which half it is.
//	node people.mjs SEED COUNT
import { allFakers, fakerEN } from "@faker-js/faker";
import { getCountries, getExampleNumber, parsePhoneNumberFromString } from "libphonenumber-js/max";
import { createRequire } from "node:module";

const examples = createRequire(import.meta.url)("libphonenumber-js/examples.mobile.json");
const [seed, count] = process.argv.slice(2).map(Number);
const say = (kind, group, value) => console.log(JSON.stringify({ kind, group, value }));
const draw = (f) => {
	try {
		return f();
	} catch {
		return null; // that locale has none
	}
};

// A locale without words of its own falls back to English: its streets would be counted twice.
const own = (locale, part, entry) => allFakers[locale].rawDefinitions?.[part]?.[entry];
for (const [locale, faker] of Object.entries(allFakers)) {
	if (locale === "base") continue;
	faker.seed(seed);
	for (let i = 0; i < count; i++) {
		if (own(locale, "location", "street_pattern")) say("street", locale, draw(() => faker.location.streetAddress()));
		if (own(locale, "phone_number", "format")) {
			say("phone_national", locale, draw(() => faker.phone.number({ style: "national" })));
			say("phone_international", locale, draw(() => faker.phone.number({ style: "international" })));
		}
		if (own(locale, "person", "first_name")) say("name", locale, draw(() => faker.person.fullName()));
	}
}

// The example of each country, and numbers beside it that are valid there.
fakerEN.seed(seed);
for (const country of getCountries()) {
	const first = getExampleNumber(country, examples);
	if (!first) continue;
	say("phone_country", country, first.formatNational());
	for (let i = 0, n = 1; i < 20 && n < 4; i++) {
		const near = first.nationalNumber.slice(0, -4) + fakerEN.string.numeric(4);
		const number = parsePhoneNumberFromString(near, country);
		if (!number?.isValid() || number.country !== country) continue;
		say("phone_country", country, number.formatNational());
		n++;
	}
}

for (const issuer of ["visa", "mastercard", "american_express", "discover", "diners_club", "jcb", "maestro"])
	for (let i = 0; i < count * 4; i++) say("card", issuer, draw(() => fakerEN.finance.creditCardNumber({ issuer })));
for (let i = 0; i < count * 4; i++) {
	for (const country of ["DE", "GB", "FR", "NL", "ES", "IT", "CH", "NO", "PL", "SE", "BE", "AT", "DK", "FI", "PT", "GR"])
		if (i % 4 === 0) say("iban", country, draw(() => fakerEN.finance.iban({ countryCode: country, formatted: i % 8 === 0 })));
	say("email", String(i), fakerEN.internet.email());
	say("ipv4", String(i), fakerEN.internet.ipv4());
	say("mac", String(i), fakerEN.internet.mac());
	say("jwt", String(i), draw(() => fakerEN.internet.jwt()));
}

// What is nobody's: any finding in it is a false alarm.
const nothing = [
	(f) => `commit ${f.git.commitSha()}`,
	(f) => `${f.system.fileName()} ${f.system.semver()}`,
	(f) => `id ${f.string.uuid()}`,
	(f) => `ISBN ${f.commerce.isbn()}`,
	(f) => `${f.commerce.productName()}: ${f.commerce.price()} ${f.finance.currencyCode()}`,
	(f) => `at ${f.date.past().toISOString()} ${f.hacker.phrase()}`,
	(f) => f.internet.userAgent(),
	(f) => f.git.commitEntry({ merge: false }).replace(/^Author:[^\n]*\n/m, ""),
	(f) => f.commerce.productDescription(),
	(f) => `color ${f.color.rgb()}, ${f.number.int()}, ${f.number.float({ fractionDigits: 3 })}`,
	(f) => `SELECT ${f.database.column()} FROM t WHERE type = '${f.database.type()}' -- ${f.database.collation()}`,
	(f) => f.lorem.paragraph(),
	(f) => `order ${f.string.numeric(8)}, ${f.number.int({ max: 99 })} pieces, ${f.science.unit().name}`,
	(f) => `${f.airline.flightNumber()} ${f.airline.airport().iataCode}, seat ${f.airline.seat()}`,
	(f) => `${f.vehicle.vehicle()} (${f.vehicle.vin()})`,
];
for (let i = 0; i < count * 40; i++) say("nothing", String(i), draw(() => nothing[i % nothing.length](fakerEN)));
