/** Reads the logs of all services as one, newest first, part by part. */
import type { ListPart } from '../pages.svelte';
import {
  LOG_SERVICES,
  type LogEntry,
  type LogQuery,
  type LogService,
  mergeByTime,
  readLog,
} from '../log';

const PART = 50;

export interface LogFilter {
  readonly service?: LogService | undefined;
  readonly adminId?: string | undefined;
  readonly action?: string | undefined;
  readonly resourceId?: string | undefined;
}

/** `after` is the time before which the next entries happened. */
export async function readLogPart(
  filter: LogFilter,
  after: string | null,
): Promise<ListPart<LogEntry>> {
  const services = filter.service ? [filter.service] : LOG_SERVICES;
  const query: LogQuery = {
    limit: PART,
    ...(filter.adminId && { adminId: filter.adminId }),
    ...(filter.action && { action: filter.action }),
    ...(filter.resourceId && { resourceId: filter.resourceId }),
    ...(after && { to: after }),
  };
  const parts = await Promise.all(services.map((service) => readLog(service, query)));
  return cut(mergeByTime(parts), PART);
}

/**
 * The first entries. The next part begins before the time of the last one, so entries of that same
 * time belong to this part.
 */
export function cut(entries: readonly LogEntry[], size: number): ListPart<LogEntry> {
  const last = entries[size - 1];
  if (!last) return { items: entries, next: null };
  const items = entries.filter(
    (entry, index) => index < size || entry.createdAt === last.createdAt,
  );
  return { items, next: last.createdAt };
}
