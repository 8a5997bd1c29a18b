#include "cmd/report/forecast.h"

#include <unistd.h>

#include "cmd/model/model.h"
#include "cmd/scale/scale.h"

enum { OBJECT_BYTES = 1024 };

_Static_assert((int)FY_PLAY_SCHEDULERS == (int)DRAW_FORECASTS, "a row for each scheduler");

static bool replay(const char *folder, int ranks, draw_forecast *out, char *error)
{
    scale_trace trace;
    if (!scale_trace_read(folder, OBJECT_BYTES, &trace, error))
        return false;
    int status = 0;
    for (int i = 0; i < out->count && status == 0; i++) {
        status = scale_replay(&trace, ranks, out->rows[i].scheduler, false);
        out->rows[i].replayed = (double)trace.plan->makespan_ns * 1e-9;
    }
    close(trace.fd);
    if (status != 0)
        (void)snprintf(error, TRACE_ERROR_BYTES, "%.4000s: its replay ended with status %d", folder,
                       status);
    return status == 0;
}

bool forecast_make(const char *folder, bool simulate, draw_forecast *out,
                   char error[TRACE_ERROR_BYTES])
{
    model_tasks tasks;
    char why[MODEL_ERROR_BYTES];
    model_traced traced = {0};
    *out = (draw_forecast){.count = 0};
    if (!model_tasks_read(folder, NULL, &tasks, &traced, why))
        return true; /* a run without tasks has no forecast */
    fy_fit fit = model_fit_tasks(&tasks);
    model_parameters p = model_parameters_default();
    bool good = true;
    for (int i = 0; i < FY_PLAY_SCHEDULERS && good; i++) {
        model_prediction m;
        good = model_predict(&tasks, &fit, &p, traced.ranks, (model_scheduler)i, &m);
        out->rows[i] = (draw_forecast_row){.scheduler = model_scheduler_names[i],
                                           .lower = m.lower.total,
                                           .average = m.average,
                                           .upper = m.upper.total,
                                           .played = m.played};
    }
    model_tasks_fini(&tasks);
    if (!good)
        (void)snprintf(error, TRACE_ERROR_BYTES, "%.4000s: no memory for its forecast", folder);
    out->count = good ? FY_PLAY_SCHEDULERS : 0;
    return good && (!simulate || replay(folder, traced.ranks, out, error));
}
