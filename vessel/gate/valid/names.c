/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the gate worker.
 * See names.h.
 */
#include "vessel/gate/valid/names.h"
#include "common/attr.h"
#include <string.h>
#include <strings.h>

static const char *const names[] = {
	"Aaron",       "Adam",	    "Ahmed",	 "Alex",      "Alexander", "Alice",
	"Amanda",      "Amelia",    "Amir",	 "Amy",	      "Ana",	   "Andrea",
	"Andrew",      "Angela",    "Anja",	 "Anna",      "Anne",	   "Anthony",
	"Antonio",     "Arthur",    "Ashley",	 "Barbara",   "Benjamin",  "Bob",
	"Brian",       "Camille",   "Carl",	 "Carlos",    "Caroline",  "Catherine",
	"Charles",     "Charlotte", "Chen",	 "Chiara",    "Christian", "Christina",
	"Christopher", "Claire",    "Daniel",	 "David",     "Deborah",   "Dennis",
	"Diana",       "Diego",	    "Dmitri",	 "Donald",    "Dorothy",   "Edward",
	"Elena",       "Elizabeth", "Emily",	 "Emma",      "Eric",	   "Erika",
	"Eva",	       "Fatima",    "Felix",	 "Francesca", "Frank",	   "Franz",
	"Gabriel",     "Gary",	    "George",	 "Giulia",    "Grace",	   "Greta",
	"Hannah",      "Hans",	    "Harry",	 "Heather",   "Heinrich",  "Helen",
	"Henry",       "Hiroshi",   "Ibrahim",	 "Ingrid",    "Isabella",  "Ivan",
	"Jack",	       "Jacob",	    "James",	 "Jan",	      "Jane",	   "Janet",
	"Jason",       "Javier",    "Jennifer",	 "Jessica",   "Joan",	   "John",
	"Jonas",       "Jonathan",  "Jose",	 "Joseph",    "Joshua",	   "Juan",
	"Julia",       "Julie",	    "Karen",	 "Karl",      "Katharina", "Kate",
	"Kathleen",    "Kenji",	    "Kevin",	 "Klaus",     "Larry",	   "Laura",
	"Lauren",      "Lena",	    "Leon",	 "Linda",     "Lisa",	   "Lucas",
	"Lucia",       "Luis",	    "Luke",	 "Maria",     "Marie",	   "Mark",
	"Marta",       "Martin",    "Mary",	 "Matteo",    "Matthew",   "Maximilian",
	"Mei",	       "Melissa",   "Michael",	 "Michelle",  "Miguel",	   "Mohamed",
	"Mohammed",    "Nancy",	    "Natalia",	 "Nicholas",  "Nicole",	   "Nina",
	"Nora",	       "Olga",	    "Oliver",	 "Olivia",    "Oscar",	   "Pablo",
	"Pamela",      "Patricia",  "Patrick",	 "Paul",      "Pedro",	   "Peter",
	"Petra",       "Philip",    "Pierre",	 "Priya",     "Rachel",	   "Raj",
	"Raymond",     "Rebecca",   "Richard",	 "Robert",    "Ronald",	   "Rosa",
	"Ruth",	       "Ryan",	    "Samantha",	 "Samuel",    "Sandra",	   "Sara",
	"Sarah",       "Scott",	    "Sebastian", "Sergei",    "Sofia",	   "Sophie",
	"Stefan",      "Stephanie", "Stephen",	 "Steven",    "Susan",	   "Sven",
	"Tatiana",     "Thomas",    "Timothy",	 "Tobias",    "Ursula",	   "Victoria",
	"Viktor",      "Walter",    "Wei",	 "William",   "Wolfgang",  "Yuki",
	"Yusuf",       "Zoe",
};

bool gate_is_given_name(const char *s, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len && strncasecmp(names[i], s, len) == 0)
			return true;
	return false;
}
