/* Wave: the frames by which ferry_quiesce asks a tree of ranks for the sums of their work. */
#ifndef FY_WAVE_H
#define FY_WAVE_H

#include "core/rank.h"

/* The kinds of a wave's frames, in the handler field. words: epoch, created, finished, mark; aux:
 * wave. In place of `created`, ASK has the `shifts` that its root knows, and an announcement of a
 * new group has `number`; the members of that group are its data. HERE tells a parent that has not
 * asked that its child waits here. In place of `finished`, ASK and HERE have the source's handlers
 * and flags (WHO_...). Their tag is the number of collectives that the source has begun. The tag of
 * ANSWER is fy_wave_closes, and twice fy_wave_era; that of an announcement fy_quiescence.late. */
typedef enum wave_kind { WAVE_ASK, WAVE_ANSWER, WAVE_ANNOUNCE, WAVE_HERE } wave_kind;

/* This rank's place among the ranks that are not gone; the root's is 0. */
int fy_wave_place(const ferry *f);

/* The rank above and the number of ranks below this one in the tree. */
int fy_wave_parent(const ferry *f);
int fy_wave_child_count(const ferry *f);

/* The work that this rank has created and finished. Work exchanged with ranks that are gone is
 * added, so that the sums over the living ranks balance. */
void fy_wave_count(const ferry *f, uint64_t *created, uint64_t *finished);

/* Whether this rank, or one that has answered it, is a member that closes. Newcomers are too late
 * for an epoch with such a rank. */
bool fy_wave_closes(const ferry *f);

/* The era of the collectives that members have begun, this rank or those that have answered it: 1
 * for the first FY_ERA_NUMBERS of them, and so on. The latest, if they differ; 0: none is a member.
 */
enum { FY_ERA_NUMBERS = 1 << 16 };
uint32_t fy_wave_era(const ferry *f);

/* Notes that this rank has a wave to answer, which no other rank has asked for. */
void fy_wave_begin(fy_quiescence *q, uint64_t epoch, uint64_t mark, int shifts, uint32_t wave);

/* Sends a frame of the wave to `rank`. A rank that has just gone need not be told: the waves begin
 * anew. */
int fy_wave_send(ferry *f, int rank, wave_kind kind, uint64_t created, uint64_t finished);
int fy_wave_tell_children(ferry *f, wave_kind kind);

/* Tells all neighbours in the tree the last epoch that has ended, if some may have missed it,
 * because the rank that told them may have died meanwhile. */
int fy_wave_announce(ferry *f);

#endif
