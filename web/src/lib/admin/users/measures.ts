/** What an administrator can do to an account, each with a reason for the log. */
import { api, call } from '$lib/api/client';
import * as m from '$lib/text/messages';

export type Measure = 'end-sessions' | 'suspend' | 'reopen' | 'release-address';

export function measuresFor(status: string): readonly Measure[] {
  return status === 'suspended'
    ? ['reopen', 'release-address']
    : ['end-sessions', 'suspend', 'release-address'];
}

export interface MeasureTexts {
  readonly title: string;
  readonly text: string;
  /** The address must be typed. */
  readonly isHarmful: boolean;
}

export function measureTexts(measure: Measure): MeasureTexts {
  switch (measure) {
    case 'end-sessions':
      return {
        title: m.adminUsers_end_sessions(),
        text: m.adminUsers_end_sessions_text(),
        isHarmful: false,
      };
    case 'suspend':
      return { title: m.adminUsers_suspend(), text: m.adminUsers_suspend_text(), isHarmful: true };
    case 'reopen':
      return { title: m.adminUsers_reopen(), text: m.adminUsers_reopen_text(), isHarmful: false };
    case 'release-address':
      return { title: m.adminUsers_release(), text: m.adminUsers_release_text(), isHarmful: true };
  }
}

export async function takeMeasure(measure: Measure, id: string, reason: string): Promise<void> {
  const options = { params: { path: { id } }, body: { reason } };
  switch (measure) {
    case 'end-sessions':
      await call(api.POST('/api/auth/admin/users/{id}/end-sessions', options));
      break;
    case 'suspend':
      await call(api.POST('/api/auth/admin/users/{id}/suspend', options));
      break;
    case 'reopen':
      await call(api.POST('/api/auth/admin/users/{id}/reopen', options));
      break;
    case 'release-address':
      await call(api.POST('/api/auth/admin/users/{id}/release-address', options));
      break;
  }
}
