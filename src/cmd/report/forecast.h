/* Forecast: what the model says of a traced run from the times of its tasks, and what the replay
 * says of it. */
#ifndef FY_CMD_FORECAST_H
#define FY_CMD_FORECAST_H

#include "cmd/report/draw.h"

/* Fills in the forecast of the run in `folder`; of a run without tasks it has no rows. `simulate`:
 * also with the replay of each scheduler. False, with a line in `error`: the replay failed. */
bool forecast_make(const char *folder, bool simulate, draw_forecast *out,
                   char error[TRACE_ERROR_BYTES]);

#endif
