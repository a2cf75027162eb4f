/** The program that most tests share. `URR_URL` names one that runs already. */
import { runProgram } from './program';

export default async function setUp(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.URR_URL) return undefined;
  const { url, admin, mails, stop } = await runProgram();
  process.env.URR_URL = url;
  process.env.URR_TEST_MAILS = mails;
  process.env.URR_TEST_ADMIN = JSON.stringify(admin);
  return stop;
}
