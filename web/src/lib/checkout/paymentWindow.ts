/**
 * Where the buyer agrees to a payment. Every provider gets the whole page and sends the buyer back
 * to the result page, with a key to confirm or with a reason why there is none.
 */
import type { Schemas } from '$lib/api/client';
import { ApiFailure } from '$lib/api/failure';
import { loadPortOne, loadScript, TOSS_SCRIPT } from '$lib/providerScript';

type Order = Schemas['OrderView'];

export interface Buyer {
  readonly name: string;
  readonly email: string;
}

/** What we use of `https://js.tosspayments.com/v2/standard`. */
interface TossPayments {
  (clientKey: string): {
    payment(options: { customerKey: string }): { requestPayment(request: object): Promise<void> };
  };
  readonly ANONYMOUS: string;
}

declare global {
  interface Window {
    TossPayments?: TossPayments;
  }
}

/** The buyer closed the window before the provider had one to send them back from. */
const GIVEN_UP = ['USER_CANCEL', 'PAY_PROCESS_CANCELED'];

/**
 * Leaves the page, or throws if the window cannot be opened. It ends when the back button brings the
 * page back as it was left: until the window has loaded, the page is there and must stay busy.
 */
export async function openPaymentWindow(order: Order, resultPath: string, buyer: Buyer) {
  const shownAgain = new Promise((resolve) =>
    window.addEventListener('pageshow', resolve, { once: true }),
  );
  await Promise.race([shownAgain, leave(order, resultPath, buyer).then(() => shownAgain)]);
}

async function leave(order: Order, resultPath: string, buyer: Buyer): Promise<void> {
  const result = resultUrl(order, resultPath);
  try {
    if (order.provider === 'toss') await openToss(order, result, buyer);
    else if (order.provider === 'portone') await openPortOne(order, result, buyer);
    else openSandbox(order, resultPath);
  } catch (error) {
    const code = (error as { code?: unknown } | null)?.code;
    if (typeof code !== 'string' || !GIVEN_UP.includes(code))
      throw new ApiFailure(503, { code: 'PAYMENT_WINDOW_FAILED' });
    result.searchParams.set('code', code);
    location.replace(result);
  }
}

/** PortOne does not repeat the amount, so the address has it beforehand. */
function resultUrl(order: Order, resultPath: string): URL {
  const url = new URL(resultPath, location.origin);
  url.searchParams.set('orderId', order.orderId);
  url.searchParams.set('amount', String(order.amount));
  return url;
}

/**
 * The window is a page of the program. It replaces this one in the history: the back button of the
 * result leads to what was before the payment.
 */
function openSandbox(order: Order, resultPath: string): void {
  const query = new URLSearchParams({
    orderId: order.orderId,
    successUrl: resultPath,
    failUrl: resultPath,
  });
  location.replace(`/sandbox/pay?${query}`);
}

async function openToss(order: Order, result: URL, buyer: Buyer): Promise<void> {
  await loadScript(TOSS_SCRIPT);
  const toss = window.TossPayments;
  if (!toss) throw new Error('the script of Toss Payments brought nothing');
  // Toss adds the order and the amount itself.
  const url = result.origin + result.pathname;
  await toss(order.clientKey)
    .payment({ customerKey: toss.ANONYMOUS })
    .requestPayment({
      method: 'CARD',
      amount: { currency: 'KRW', value: order.amount },
      orderId: order.orderId,
      orderName: order.orderName,
      successUrl: url,
      failUrl: url,
      customerName: buyer.name,
      customerEmail: buyer.email,
      // A window within the page would need their frames, and phones cannot show one.
      windowTarget: 'self',
    });
}

async function openPortOne(order: Order, result: URL, buyer: Buyer): Promise<void> {
  const portOne = await loadPortOne();
  const answer = await portOne.requestPayment({
    storeId: order.storeId,
    channelKey: order.clientKey,
    paymentId: order.orderId,
    orderName: order.orderName,
    totalAmount: order.amount,
    currency: 'KRW',
    payMethod: 'CARD',
    customer: { fullName: buyer.name, email: buyer.email },
    redirectUrl: result.href,
    forceRedirect: true,
  });
  // Only what fails before the window opens is answered here; the rest comes by the address.
  if (answer?.code) throw new Error(answer.code);
}
