/* Forecast: the run times that the model and the replay predict for a traced run. */
#ifndef FY_CMD_FORECAST_H
#define FY_CMD_FORECAST_H

#include "cmd/report/draw.h"

/* Makes the forecast of the run in `folder`. It has no rows if the run has no tasks. `simulate`: it
 * also replays the run under each scheduler. False, with a line in `error`: no memory, or a replay
 * failed. */
bool forecast_make(const char *folder, bool simulate, draw_forecast *out,
                   char error[TRACE_ERROR_BYTES]);

#endif
