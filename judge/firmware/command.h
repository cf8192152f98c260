// Commands: lines of text from the serial line.
#ifndef JUDGE_COMMAND_H
#define JUDGE_COMMAND_H

void command_init(void);
void command_poll(void);

#endif
