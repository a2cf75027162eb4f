/** A fan whose address is verified: others get no mail. */
import { request } from '@playwright/test';
import { type Account, expect, registerFan, SAME_ORIGIN } from './fan';
import { linkTo } from './mailbox';

export async function verifiedFan(label: string): Promise<Account> {
  const account = await registerFan(label);
  const token = (await linkTo('verify', account.email)).split('#')[1];
  const api = await request.newContext({ baseURL: process.env.URR_URL ?? '' });
  const verified = await api.post('/api/auth/email/verify', {
    data: { token },
    headers: SAME_ORIGIN,
  });
  expect(verified.ok(), await verified.text()).toBe(true);
  await api.dispose();
  return account;
}
