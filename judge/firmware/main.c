// Outside judge: asks a machine by a pin, waits for its answer on another pin, and reports each answer and each miss.
#include "board.h"
#include "command.h"
#include "line.h"
#include "questions.h"
#include "run.h"
#include "samplers.h"

int main(void) {
    board_init();
    samplers_init();
    questions_init();
    command_init();
    for (;;) {
        run_poll();
        command_poll();
        line_poll();
    }
}
