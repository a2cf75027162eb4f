/** Scripts of providers that we do not serve ourselves. The policy of the page names their hosts. */
export const TOSS_SCRIPT = 'https://js.tosspayments.com/v2/standard';
export const PORTONE_SCRIPT = 'https://cdn.portone.io/v2/browser-sdk.js';

/** What we use of PortOne's script. */
interface PortOne {
  requestPayment(request: object): Promise<{ code?: string } | undefined>;
  requestIdentityVerification(request: object): Promise<{ code?: string } | undefined>;
}

declare global {
  interface Window {
    PortOne?: PortOne;
  }
}

export async function loadPortOne(): Promise<PortOne> {
  await loadScript(PORTONE_SCRIPT);
  if (!window.PortOne) throw new Error('the script of PortOne brought nothing');
  return window.PortOne;
}

const scripts = new Map<string, Promise<void>>();

/** Loads a provider's script once. One that failed is tried again. */
export function loadScript(source: string): Promise<void> {
  const known = scripts.get(source);
  if (known) return known;
  const loading = new Promise<void>((resolve, reject) => {
    const element = document.createElement('script');
    element.src = source;
    element.onload = () => resolve();
    element.onerror = () => {
      element.remove();
      scripts.delete(source);
      reject(new Error(`${source} did not load`));
    };
    document.head.append(element);
  });
  scripts.set(source, loading);
  return loading;
}
