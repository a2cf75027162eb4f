import { goto } from '$app/navigation';
import { isProgramPage } from './return';

/** Goes there in place of the page that asked for the login. */
export async function goBack(path: string): Promise<void> {
  if (isProgramPage(path)) location.replace(path);
  else await goto(path, { replaceState: true });
}
