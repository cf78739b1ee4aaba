/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in any process.
 * See table.h. `make docs` afterwards.
 */
#include "common/term/table.h"

#include "common/attr.h"
#include "common/str.h"

#define C0(id, logs, name, why)                                                          \
	{TERM_OF_C0, TERM_PASSES, id, 0, 0, 0, logs, name, why, NULL}
#define NO_C0(id, name, why)                                                             \
	{TERM_OF_C0, TERM_REMOVED, id, 0, 0, 0, false, name, why, NULL}
#define ESC(id, name) {TERM_OF_ESC, TERM_PASSES, id, 0, 0, 0, false, name, "", NULL}
#define NO_ESC(id, name, why)                                                            \
	{TERM_OF_ESC, TERM_REMOVED, id, 0, 0, 0, false, name, why, NULL}
#define CSI(id, n, from, to, name, why)                                                  \
	{TERM_OF_CSI, TERM_PASSES, id, n, from, to, false, name, why, NULL}
#define NO_CSI(id, n, from, to, name, why)                                               \
	{TERM_OF_CSI, TERM_REMOVED, id, n, from, to, false, name, why, NULL}
#define MODE(v, name) {TERM_OF_MODE, TERM_PASSES, NULL, 1, v, v, false, name, "", NULL}
#define NO_MODE(v, name, why)                                                            \
	{TERM_OF_MODE, TERM_REMOVED, NULL, 1, v, v, false, name, why, NULL}
#define DEC(v, name) {TERM_OF_DEC, TERM_PASSES, NULL, 1, v, v, false, name, "", NULL}
#define NO_DEC(from, to, name, why)                                                      \
	{TERM_OF_DEC, TERM_REMOVED, NULL, 1, from, to, false, name, why, NULL}
#define SGR(from, to, logs, name)                                                        \
	{TERM_OF_SGR, TERM_PASSES, NULL, 1, from, to, logs, name, "", NULL}
#define NO_SGR(from, to, name, why)                                                      \
	{TERM_OF_SGR, TERM_REMOVED, NULL, 1, from, to, false, name, why, NULL}
#define NO_STRING(id, name, why)                                                         \
	{TERM_OF_STRING, TERM_REMOVED, id, 0, 0, 0, false, name, why, NULL}
#define NO_CHAR(from, to, name, why)                                                     \
	{TERM_OF_CHAR, TERM_REMOVED, NULL, 0, from, to, false, name, why, NULL}

#define ASKS "asks the terminal, whose answer would be typed into the person's input"
#define KEYS "changes what keys send, the person's way out among them"
#define STAYS "nobody can give back what was there before"
#define WINDOW "the window is the person's"
#define PICTURE "a decoder of pictures or commands within the terminal"
#define SHIFT "text that comes afterwards would be other letters; G0 and G1 are enough"
#define UTF8 "the terminal would read the bytes of a character as controls"

/* clang-format off */
const struct term_rule term_table[] = {
	/* C0 */
	C0("\n", true, "line feed", ""),
	C0("\t", true, "tab", ""),
	C0("\r", false, "carriage return", "in logs it ends a line"),
	C0("\b", false, "backspace", ""),
	C0("\a", false, "bell", "several in a row are one"),
	C0("\v", false, "vertical tab", ""),
	C0("\f", false, "form feed", ""),
	C0("\x0e", false, "shift out (G1)", ""),
	C0("\x0f", false, "shift in (G0)", ""),
	NO_C0("\x05", "enquiry (ENQ)", ASKS " (the answerback)"),
	NO_C0("\x11", "XON", "flow control, on a line that has it"),
	NO_C0("\x13", "XOFF", "flow control, on a line that has it"),
	NO_C0("\x18", "cancel (CAN)", "ends a sequence; terminals show it in their own ways"),
	NO_C0("\x1a", "substitute (SUB)", "ends a sequence; terminals show it in their own ways"),
	NO_C0("\x7f", "delete", "padding"),

	/* ESC */
	ESC("7", "save the cursor (DECSC)"),
	ESC("8", "restore the cursor (DECRC)"),
	ESC("=", "keypad of applications (DECKPAM)"),
	ESC(">", "keypad of numbers (DECKPNM)"),
	ESC("D", "down, scrolling (IND)"),
	ESC("E", "next line (NEL)"),
	ESC("M", "up, scrolling (RI)"),
	ESC("(B", "G0 is ASCII"),
	ESC("(0", "G0 is line drawing"),
	ESC(")B", "G1 is ASCII"),
	ESC(")0", "G1 is line drawing"),
	NO_ESC("c", "full reset (RIS)", "erases what was there before the job on some terminals; CSI ! p passes"),
	NO_ESC("H", "set a tab stop (HTS)", STAYS),
	NO_ESC("Z", "what are you? (DECID)", ASKS),
	NO_ESC("N", "one character of G2 (SS2)", SHIFT),
	NO_ESC("O", "one character of G3 (SS3)", SHIFT),
	NO_ESC("n", "G2 from here on (LS2)", SHIFT),
	NO_ESC("o", "G3 from here on (LS3)", SHIFT),
	NO_ESC("~", "G1 for high bytes (LS1R)", SHIFT),
	NO_ESC("}", "G2 for high bytes (LS2R)", SHIFT),
	NO_ESC("|", "G3 for high bytes (LS3R)", SHIFT),
	NO_ESC("(A", "other sets in G0", SHIFT),
	NO_ESC("(U", "the console's own font (Linux)", SHIFT),
	NO_ESC("*0", "G2 is line drawing", SHIFT),
	NO_ESC("+0", "G3 is line drawing", SHIFT),
	NO_ESC("%@", "leave UTF-8", UTF8),
	NO_ESC("%G", "enter UTF-8", UTF8),
	NO_ESC(" G", "controls of eight bits (S8C1T)", "answers and keys would come in another form"),
	NO_ESC(" F", "controls of seven bits (S7C1T)", "a mode of the person's"),
	NO_ESC("#8", "fill the screen (DECALN)", "a test for servicing"),
	NO_ESC("#3", "lines of double height (DECDHL)", "columns would not be where they are counted"),
	NO_ESC("#6", "lines of double width (DECDWL)", "columns would not be where they are counted"),
	NO_ESC("<", "leave VT52", "a mode that is never entered"),
	NO_ESC("l", "lock memory (HP)", STAYS),
	NO_ESC("m", "unlock memory (HP)", STAYS),
	NO_ESC("g", "visual bell (screen)", "the bell is \\a"),

	/* CSI: the cursor */
	CSI("A", 1, 0, TERM_VALUE_MAX, "up (CUU)", ""),
	CSI("B", 1, 0, TERM_VALUE_MAX, "down (CUD)", ""),
	CSI("C", 1, 0, TERM_VALUE_MAX, "right (CUF)", ""),
	CSI("D", 1, 0, TERM_VALUE_MAX, "left (CUB)", ""),
	CSI("E", 1, 0, TERM_VALUE_MAX, "lines down (CNL)", ""),
	CSI("F", 1, 0, TERM_VALUE_MAX, "lines up (CPL)", ""),
	CSI("G", 1, 0, TERM_VALUE_MAX, "column (CHA)", ""),
	CSI("H", 2, 0, TERM_VALUE_MAX, "row and column (CUP)", ""),
	CSI("f", 2, 0, TERM_VALUE_MAX, "row and column (HVP)", ""),
	CSI("d", 1, 0, TERM_VALUE_MAX, "row (VPA)", ""),
	CSI("e", 1, 0, TERM_VALUE_MAX, "rows down (VPR)", ""),
	CSI("`", 1, 0, TERM_VALUE_MAX, "column (HPA)", ""),
	CSI("a", 1, 0, TERM_VALUE_MAX, "columns right (HPR)", ""),
	CSI("I", 1, 0, TERM_VALUE_MAX, "tabs forward (CHT)", ""),
	CSI("Z", 1, 0, TERM_VALUE_MAX, "tabs back (CBT)", ""),
	CSI("s", 0, 0, 0, "save the cursor (SCOSC)", ""),
	CSI("u", 0, 0, 0, "restore the cursor (SCORC)", ""),
	/* the screen */
	CSI("J", 1, 0, 2, "erase in the screen (ED)", ""),
	CSI("K", 1, 0, 2, "erase in the line (EL)", ""),
	CSI("X", 1, 0, TERM_VALUE_MAX, "erase characters (ECH)", ""),
	CSI("@", 1, 0, TERM_VALUE_MAX, "insert characters (ICH)", ""),
	CSI("P", 1, 0, TERM_VALUE_MAX, "delete characters (DCH)", ""),
	CSI("L", 1, 0, TERM_VALUE_MAX, "insert lines (IL)", ""),
	CSI("M", 1, 0, TERM_VALUE_MAX, "delete lines (DL)", ""),
	CSI("S", 1, 0, TERM_VALUE_MAX, "scroll up (SU)", ""),
	CSI("T", 1, 0, TERM_VALUE_MAX, "scroll down (SD)", ""),
	CSI("r", 2, 0, TERM_VALUE_MAX, "scroll region (DECSTBM)", ""),
	CSI("b", 1, 0, 1000, "repeat a character (REP)", "up to 1000 times"),
	CSI(" q", 1, 0, 6, "shape of the cursor (DECSCUSR)", ""),
	CSI("!p", 0, 0, 0, "soft reset (DECSTR)", ""),
	/* what asks */
	{TERM_OF_CSI, TERM_ANSWERED, "c", 1, 0, 0, false, "what are you? (DA1)",
	 "a VT100 with its advanced option; fish, tmux and others wait for some answer", "\x1b[?1;2c"},
	{TERM_OF_CSI, TERM_ANSWERED, "n", 1, 5, 5, false, "do you work? (DSR)", "it does", "\x1b[0n"},
	{TERM_OF_CSI, TERM_ASKED, "n", 1, 6, 6, false, "where is the cursor? (CPR)",
	 "programs that draw below the prompt need it (codex, prompt_toolkit); at most four without an answer", NULL},
	NO_CSI("?n", 1, 6, 6, "where is the cursor? (DECXCPR)", "CSI 6 n passes"),
	NO_CSI("?n", 1, 15, 99, "reports on printer, keys, locator, memory (DSR)", ASKS),
	NO_CSI(">c", 1, 0, 0, "which version? (DA2)", ASKS "; it tells which terminal, so which holes"),
	NO_CSI("=c", 1, 0, 0, "which serial number? (DA3)", ASKS),
	NO_CSI(">q", 1, 0, 0, "which program? (XTVERSION)", ASKS "; it tells which terminal, so which holes"),
	NO_CSI("?$p", 1, 0, TERM_VALUE_MAX, "how is a mode set? (DECRQM)", ASKS),
	NO_CSI("$p", 1, 0, TERM_VALUE_MAX, "how is a mode set? (DECRQM)", ASKS),
	NO_CSI("x", 1, 0, 1, "parameters of the line (DECREQTPARM)", ASKS),
	NO_CSI("*y", 4, 0, TERM_VALUE_MAX, "checksum of a rectangle (DECRQCRA)", ASKS "; it reads the screen"),
	NO_CSI("$w", 1, 1, 2, "state of the presentation (DECRQPSR)", ASKS),
	NO_CSI("$u", 1, 1, 1, "state of the terminal (DECRQTSR)", ASKS),
	NO_CSI("&u", 1, 0, 0, "preferred supplemental set (DECRQUPSS)", ASKS),
	NO_CSI("+x", 1, 0, 0, "function keys free (DECRQPKFM)", ASKS),
	NO_CSI("?S", 3, 0, TERM_VALUE_MAX, "limits of pictures (XTSMGRAPHICS)", ASKS),
	NO_CSI("'|", 1, 0, 1, "where is the locator? (DECRQLP)", ASKS),
	/* what else it does */
	NO_CSI("J", 1, 3, 3, "erase what was scrolled away", "it is the person's; erasing the screen passes"),
	NO_CSI("t", 1, 20, 21, "report the title", ASKS "; the oldest way to type a command (CVE-2003-0063)"),
	NO_CSI("t", 1, 22, 23, "save and restore the title (XTWINOPS)", WINDOW),
	NO_CSI("t", 3, 1, 19, "move, resize, minimise, measure the window (XTWINOPS)", WINDOW),
	NO_CSI(">t", 1, 0, 3, "how titles are set and read (XTSMTITLE)", WINDOW),
	NO_CSI("i", 1, 0, 11, "print the screen, copy to the printer (MC)", "media of the person's"),
	NO_CSI("?i", 1, 1, 11, "print a line, copy to the printer (DECMC)", "media of the person's"),
	NO_CSI(">m", 2, 0, TERM_VALUE_MAX, "other keys (XTMODKEYS, modifyOtherKeys)", KEYS),
	NO_CSI(">n", 1, 0, TERM_VALUE_MAX, "other keys off (XTMODKEYS)", KEYS),
	NO_CSI("?m", 1, 0, TERM_VALUE_MAX, "how are keys set? (XTQMODKEYS)", ASKS),
	NO_CSI(">u", 1, 0, 31, "push a keyboard mode (kitty)", KEYS),
	NO_CSI("<u", 1, 0, TERM_VALUE_MAX, "pop a keyboard mode (kitty)", KEYS),
	NO_CSI("=u", 2, 0, 31, "set a keyboard mode (kitty)", KEYS),
	NO_CSI("?u", 0, 0, 0, "which keyboard mode? (kitty)", ASKS "; programs ask DA1 too, and take its answer for a no"),
	NO_CSI(">f", 2, 0, TERM_VALUE_MAX, "format of other keys (XTFMTKEYS)", KEYS),
	NO_CSI("g", 1, 0, 3, "clear tab stops (TBC)", STAYS),
	NO_CSI("?W", 1, 5, 5, "tab stops at each eighth column (DECST8C)", STAYS),
	NO_CSI("s", 2, 1, TERM_VALUE_MAX, "margins left and right (DECSLRM)", "its mode is removed"),
	NO_CSI("?s", 1, 0, TERM_VALUE_MAX, "save modes (XTSAVE)", "what was saved stays"),
	NO_CSI("?r", 1, 0, TERM_VALUE_MAX, "restore modes (XTRESTORE)", "brings back modes that are in no row"),
	NO_CSI("q", 1, 0, 23, "lights of the keyboard (DECLL)", KEYS),
	NO_CSI("\"p", 2, 61, 69, "level of conformance (DECSCL)", "a reset, and controls of eight bits"),
	NO_CSI("\"q", 1, 0, 2, "protect characters (DECSCA)", "what can't be erased would stay"),
	NO_CSI("?J", 1, 0, 3, "erase what is not protected (DECSED)", "nothing is"),
	NO_CSI("?K", 1, 0, 2, "erase what is not protected (DECSEL)", "nothing is"),
	NO_CSI("y", 2, 0, TERM_VALUE_MAX, "test yourself (DECTST)", "some did so without end"),
	NO_CSI("'z", 2, 0, 2, "locator reports (DECELR)", ASKS),
	NO_CSI("'{", 1, 0, 4, "locator events (DECSLE)", ASKS),
	NO_CSI("T", 5, 0, TERM_VALUE_MAX, "highlight tracking of the mouse", "the terminal stops until the program answers"),
	NO_CSI("$v", 4, 0, TERM_VALUE_MAX, "copy a rectangle (DECCRA)", "no program of a whole screen needs it"),
	NO_CSI("$x", 4, 0, TERM_VALUE_MAX, "fill a rectangle (DECFRA)", "no program of a whole screen needs it"),
	NO_CSI("$r", 4, 0, TERM_VALUE_MAX, "attributes of a rectangle (DECCARA)", "no program of a whole screen needs it; it conceals"),
	NO_CSI("*|", 1, 0, TERM_VALUE_MAX, "lines of the screen (DECSNLS)", WINDOW),
	NO_CSI("$|", 1, 0, TERM_VALUE_MAX, "columns of the page (DECSCPP)", WINDOW),
	NO_CSI(">p", 1, 0, 3, "hide the pointer (XTSMPOINTER)", WINDOW),
	NO_CSI("#{", 1, 0, TERM_VALUE_MAX, "push renditions (XTPUSHSGR)", "what is pushed stays"),
	NO_CSI("#P", 1, 0, TERM_VALUE_MAX, "push colours (XTPUSHCOLORS)", "what is pushed stays"),

	/* modes */
	MODE(4, "insert (IRM)"),
	NO_MODE(2, "lock the keyboard (KAM)", "the person could type nothing"),
	NO_MODE(12, "no local echo (SRM)", KEYS),
	NO_MODE(20, "new line (LNM)", KEYS),
	DEC(1, "cursor keys of applications (DECCKM)"),
	DEC(5, "reverse screen (DECSCNM)"),
	DEC(7, "autowrap (DECAWM)"),
	DEC(12, "blinking cursor"),
	DEC(25, "cursor shown (DECTCEM)"),
	DEC(47, "other screen"),
	DEC(1047, "other screen"),
	DEC(1048, "cursor saved"),
	DEC(1049, "other screen, cursor saved"),
	DEC(1000, "mouse buttons"),
	DEC(1002, "mouse, with dragging"),
	DEC(1003, "mouse, all movement"),
	DEC(1006, "mouse, in decimal (SGR)"),
	DEC(1004, "focus"),
	DEC(2004, "bracketed paste"),
	DEC(2026, "synchronized output"),
	NO_DEC(2, 2, "VT52 (DECANM)", "in VT52 other bytes are controls"),
	NO_DEC(3, 3, "132 columns (DECCOLM)", WINDOW),
	NO_DEC(4, 4, "smooth scrolling (DECSCLM)", STAYS),
	NO_DEC(6, 6, "origin (DECOM)", "no program asks terminfo for it, and giving it back moves the cursor"),
	NO_DEC(8, 8, "keys repeat (DECARM)", KEYS),
	NO_DEC(9, 9, "mouse of X10", "1000 passes"),
	NO_DEC(18, 19, "printer (DECPFF, DECPEX)", "media of the person's"),
	NO_DEC(42, 42, "national characters (DECNRCM)", SHIFT),
	NO_DEC(66, 66, "keypad (DECNKM)", "ESC = passes"),
	NO_DEC(67, 67, "what backspace sends (DECBKM)", KEYS),
	NO_DEC(69, 69, "margins left and right (DECLRMM)", "CSI s would be another thing"),
	NO_DEC(80, 80, "where pictures go (DECSDM)", PICTURE),
	NO_DEC(1001, 1001, "highlight tracking of the mouse", "the terminal stops until the program answers"),
	NO_DEC(1005, 1005, "mouse, in UTF-8", "can't be told from typed text; 1006 passes"),
	NO_DEC(1015, 1016, "mouse, in other forms", "1006 passes"),
	NO_DEC(1007, 1007, "wheel sends arrow keys", STAYS),
	NO_DEC(1034, 1039, "meta, alt and delete keys", KEYS),
	NO_DEC(1041, 1044, "selection and clipboard, window raised by a bell", WINDOW),
	NO_DEC(1050, 1061, "function keys", KEYS),
	NO_DEC(2027, 2027, "clusters of characters", STAYS),
	NO_DEC(2031, 2031, "tell when colours change", ASKS),
	NO_DEC(2048, 2048, "tell when the window is resized", ASKS "; SIGWINCH tells it"),
	NO_DEC(5522, 5522, "paste events (kitty)", "the clipboard is the person's"),
	NO_DEC(9001, 9001, "keys of Windows", KEYS),

	/* renditions */
	SGR(0, 4, true, "none, bold, faint, italic, underline"),
	SGR(5, 5, false, "blink"),
	SGR(7, 7, true, "inverse"),
	SGR(9, 9, true, "crossed out"),
	SGR(21, 25, true, "double underline; the first ones off"),
	SGR(27, 29, true, "inverse, concealed, crossed out off"),
	SGR(30, 37, true, "colour"),
	SGR(38, 38, true, "colour by number or by red, green, blue"),
	SGR(39, 39, true, "the terminal's colour"),
	SGR(40, 47, true, "colour behind"),
	SGR(48, 48, true, "colour behind by number or by red, green, blue"),
	SGR(49, 49, true, "the terminal's colour behind"),
	SGR(53, 53, false, "overline"),
	SGR(55, 55, false, "overline off"),
	SGR(90, 97, true, "bright colour"),
	SGR(100, 107, true, "bright colour behind"),
	NO_SGR(6, 6, "rapid blink", "5 passes"),
	NO_SGR(8, 8, "conceal", "the person would run or paste what is not seen"),
	NO_SGR(10, 20, "other fonts", "on a console they choose what a byte looks like"),
	NO_SGR(58, 59, "colour of the underline", "a terminal that does not know 58 reads its numbers as renditions, 8 among them"),
	NO_SGR(73, 75, "above and below the line", "no program needs it"),

	/* strings: nothing passes */
	NO_STRING("]0;", "title and icon", "titles are read back, and believed"),
	NO_STRING("]1;", "icon", "titles are read back, and believed"),
	NO_STRING("]2;", "title", "titles are read back, and believed"),
	NO_STRING("]3;", "property of the window", WINDOW),
	NO_STRING("]4;", "colours of the palette; or asks for one", STAYS),
	NO_STRING("]5;", "special colours", STAYS),
	NO_STRING("]7;", "the current directory", "where new tabs begin: a path of the job's"),
	NO_STRING("]8;;", "link", "leads elsewhere than it says; the text of it passes"),
	NO_STRING("]9;", "notification; progress and macros (ConEmu)", "speaks in the desktop's name; ConEmu's run commands"),
	NO_STRING("]10;", "colour of text; or asks for it", STAYS),
	NO_STRING("]11;", "colour behind; or asks for it", STAYS),
	NO_STRING("]12;", "colour of the cursor", STAYS),
	NO_STRING("]22;", "shape of the pointer", WINDOW),
	NO_STRING("]46;", "log file (xterm)", "writes a file of the person's"),
	NO_STRING("]49;", "colours of the cursor and selection (rxvt, screen)", "a decoder of the terminal's own (CVE-2020-9366)"),
	NO_STRING("]50;", "font; or asks for it", ASKS " (CVE-2022-45063)"),
	NO_STRING("]51;", "calls a function of Emacs or Vim", "runs code in the program around it"),
	NO_STRING("]52;", "clipboard", "the person would paste it elsewhere; or it would be read"),
	NO_STRING("]55;", "screen into a file (rxvt, Eterm)", "writes a file of the person's (CVE-2003-0021, CVE-2003-0022)"),
	NO_STRING("]60;", "what is allowed? (xterm)", ASKS),
	NO_STRING("]99;", "notification (kitty)", "speaks in the desktop's name (CVE-2022-41322)"),
	NO_STRING("]104", "colours back", "none were changed"),
	NO_STRING("]112", "colour of the cursor back", "none was changed"),
	NO_STRING("]133;", "marks of the shell's prompt", "a command of the job's would be the person's"),
	NO_STRING("]176;", "name of the application (foot)", WINDOW),
	NO_STRING("]440;", "plays a sound (mintty)", "opens a file of the person's"),
	NO_STRING("]633;", "marks of the shell's prompt (VS Code)", "a command of the job's would be the person's"),
	NO_STRING("]666;", "marks (VTE)", "a command of the job's would be the person's"),
	NO_STRING("]697;", "marks (Fig)", "a command of the job's would be the person's"),
	NO_STRING("]701;", "locale (rxvt, mintty)", UTF8),
	NO_STRING("]703;", "menu of the window (rxvt)", "an entry that the person chooses types a command (CVE-2003-0023)"),
	NO_STRING("]720;", "scrolls (rxvt)", WINDOW),
	NO_STRING("]777;", "notification, extensions (rxvt)", "speaks in the desktop's name, and to extensions that run commands"),
	NO_STRING("]1337;", "files, clipboard, variables (iTerm2)", "saves files, reads what is selected"),
	NO_STRING("]5113;", "file transfer (kitty)", "reads and writes files of the person's"),
	NO_STRING("]5522;", "clipboard (kitty)", "the clipboard is the person's"),
	NO_STRING("]7770;", "size of the font (mintty)", WINDOW),
	NO_STRING("]P", "a colour of the palette (Linux' console)", STAYS),
	NO_STRING("]R", "palette back (Linux' console)", "none was changed"),
	NO_STRING("]L", "icon (dtterm)", "titles are read back, and believed"),
	NO_STRING("]l", "title (dtterm)", "titles are read back, and believed"),
	NO_STRING("P$q", "how is it set? (DECRQSS)", ASKS " (CVE-2008-2383, CVE-2022-45872)"),
	NO_STRING("P+q", "what can you do? (XTGETTCAP)", ASKS),
	NO_STRING("P+p", "terminal description (XTSETTCAP)", KEYS),
	NO_STRING("P1$t", "set the state (DECRSPS)", "saved modes that are in no row"),
	NO_STRING("P0|", "what keys send (DECUDK)", KEYS),
	NO_STRING("P1!z", "macro (DECDMAC)", "what was stored runs later"),
	NO_STRING("P1{", "font (DECDLD)", "letters would look like others"),
	NO_STRING("P1!u", "supplemental set (DECAUPSS)", SHIFT),
	NO_STRING("Pq", "picture (sixel)", PICTURE " (CVE-2022-24130)"),
	NO_STRING("P0p", "picture (ReGIS)", PICTURE " (CVE-2023-40359)"),
	NO_STRING("P1000p", "tmux takes over (iTerm2)", "the text that follows is commands to the terminal (CVE-2019-9535)"),
	NO_STRING("Ptmux;", "past tmux to the terminal around it", "all of this once more"),
	NO_STRING("P=1s", "synchronized output, the old form", "CSI ? 2026 h passes"),
	NO_STRING("P@kitty-", "commands to kitty", "runs commands of the person's"),
	NO_STRING("_G", "picture (kitty)", PICTURE ", which opens files by name"),
	NO_STRING("_", "command of an application (APC)", "speaks to the program around the terminal"),
	NO_STRING("^", "privacy message (PM)", "speaks to the program around the terminal"),
	NO_STRING("X", "start of string (SOS)", "speaks to the program around the terminal"),
	NO_STRING("k", "title (screen, tmux)", "titles are read back, and believed"),
	NO_STRING("!", "message to all windows (screen)", "speaks in the terminal's name"),

	/* characters: in these rows is what does not pass */
	NO_CHAR(0x80, 0x9f, "C1 controls", "CSI and strings among them are what their ESC forms are; the others are gone"),
	NO_CHAR(0x2028, 0x2029, "separators of lines and paragraphs", "a line that is none"),
	NO_CHAR(0x202a, 0x202e, "embedding and override of direction", "text is read in another order than it has (CVE-2021-42574)"),
	NO_CHAR(0x2060, 0x206f, "isolates of direction, invisible operators", "text is read in another order than it has (CVE-2021-42574)"),
	NO_CHAR(0xfeff, 0xfeff, "byte order mark", "it shows nothing"),
	NO_CHAR(0xfff9, 0xfffb, "annotations", "they show nothing"),
	NO_CHAR(0xe0000, 0xe007f, "tags", "words that show nothing, and are copied"),
};
/* clang-format on */
const size_t term_table_len = ARRAY_SIZE(term_table);

static bool has_values(const struct term_rule *rule, const uint32_t *values, size_t n)
{
	static const uint32_t none[] = {0};

	if (n > rule->n)
		return false;
	if (n == 0 && rule->n) {
		values = none;
		n = 1;
	}
	for (size_t i = 0; i < n; i++)
		if (values[i] < rule->from || values[i] > rule->to)
			return false;
	return true;
}

const struct term_rule *term_rule_find(enum term_kind kind, const char *id,
				       const uint32_t *values, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(term_table); i++) {
		const struct term_rule *rule = &term_table[i];

		if (rule->kind == kind && rule->verdict != TERM_REMOVED &&
		    (!id || str_eq(rule->id, id)) && has_values(rule, values, n))
			return rule;
	}
	return NULL;
}

bool term_char_passes(uint32_t c)
{
	for (size_t i = 0; c >= 0x80 && i < ARRAY_SIZE(term_table); i++) {
		const struct term_rule *rule = &term_table[i];

		if (rule->kind == TERM_OF_CHAR && c >= rule->from && c <= rule->to)
			return false;
	}
	return true;
}
