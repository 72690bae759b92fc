// text.h - makes texts from files harmless for a terminal.
//
// Names of files, frames and devices may contain characters that move the
// cursor, start a command of the terminal, or reverse the order of the letters.
// All text that the tool shows goes through here.
#ifndef TARN_KIT_TEXT_H_
#define TARN_KIT_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Bytes of the well-formed character of UTF-8 at |text|, and its number; 0 if
// none stands there.
size_t text_character(const char *text, uint32_t *out_code);

// Whether a terminal would obey |code| rather than show it: control characters
// (C0, DEL, C1) and those that change the direction of what follows.
bool text_is_control(uint32_t code);

// Replaces, in place, invalid UTF-8 and all control characters but those in
// |keep| by one '?' each.
void text_neutralise(char *text, const char *keep);

// Writes |text| neutralised.
void text_write(const char *text, FILE *out);

#endif  // TARN_KIT_TEXT_H_
