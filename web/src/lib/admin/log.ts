/** The admin logs of the services. Each service keeps its own; the pages join them by time. */
import { api, call, type Schemas } from '$lib/api/client';

export type AdminAction = Schemas['AdminActionView'];

export interface LogQuery {
  adminId?: string;
  action?: string;
  resourceType?: string;
  resourceId?: string;
  from?: string;
  to?: string;
  limit?: number;
}

const READERS = {
  catalog: (query: LogQuery) => call(api.GET('/api/admin/catalog/log', { params: { query } })),
  queue: (query: LogQuery) => call(api.GET('/api/admin/queue/log', { params: { query } })),
  ticket: (query: LogQuery) => call(api.GET('/api/admin/reservations/log', { params: { query } })),
  payment: (query: LogQuery) => call(api.GET('/api/admin/payments/log', { params: { query } })),
  auth: (query: LogQuery) => call(api.GET('/api/auth/admin/log', { params: { query } })),
  mail: (query: LogQuery) => call(api.GET('/api/admin/mails/log', { params: { query } })),
  community: (query: LogQuery) => call(api.GET('/api/admin/community/log', { params: { query } })),
};

export type LogService = keyof typeof READERS;

export const LOG_SERVICES = Object.keys(READERS) as LogService[];

export interface LogEntry extends AdminAction {
  readonly service: LogService;
}

export async function readLog(service: LogService, query: LogQuery): Promise<LogEntry[]> {
  const { entries } = await READERS[service](query);
  return entries.map((entry) => ({ ...entry, service }));
}

/** Logs of one thing that also its organiser and support may read. */
const SHARED = {
  event: (id: string) => call(api.GET('/api/admin/events/{id}/log', { params: { path: { id } } })),
  room: (eventId: string) =>
    call(api.GET('/api/admin/queue/{eventId}/log', { params: { path: { eventId } } })),
  reservation: (id: string) =>
    call(api.GET('/api/admin/reservations/{id}/log', { params: { path: { id } } })),
};

export type SharedLog = keyof typeof SHARED;

const SERVICES: Record<SharedLog, LogService> = {
  event: 'catalog',
  room: 'queue',
  reservation: 'ticket',
};

export async function readSharedLog(log: SharedLog, id: string): Promise<LogEntry[]> {
  const { entries } = await SHARED[log](id);
  return entries.map((entry) => ({ ...entry, service: SERVICES[log] }));
}

/** Newest first. */
export function mergeByTime(parts: readonly (readonly LogEntry[])[]): LogEntry[] {
  return parts
    .flat()
    .sort((a, b) => b.createdAt.localeCompare(a.createdAt) || b.id.localeCompare(a.id));
}
