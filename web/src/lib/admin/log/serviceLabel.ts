import * as m from '$lib/text/messages';
import type { LogService } from '../log';

export function serviceLabel(service: LogService): string {
  const labels: Record<LogService, string> = {
    catalog: m.adminLog_catalog(),
    queue: m.adminLog_queue(),
    ticket: m.adminLog_ticket(),
    payment: m.adminLog_payment(),
    auth: m.adminLog_auth(),
    mail: m.adminLog_mail(),
    community: m.adminLog_community(),
  };
  return labels[service];
}
