import { expect, test } from 'vitest';
import { readReturn } from './providerReturn';

const read = (query: string) => readReturn(new URLSearchParams(query));

test('Toss and the sandbox bring the key, the order and the amount', () => {
  expect(read('paymentType=NORMAL&orderId=ORD_1&paymentKey=tk_1&amount=50000')).toEqual({
    kind: 'approved',
    orderId: 'ORD_1',
    paymentKey: 'tk_1',
    amount: 50_000,
  });
});

test('PortOne adds its token to our address', () => {
  const query = 'orderId=ORD_1&amount=50000&transactionType=PAYMENT&txId=7&paymentId=ORD_1';
  expect(read(`${query}&paymentToken=pt_1`)).toEqual({
    kind: 'approved',
    orderId: 'ORD_1',
    paymentKey: 'pt_1',
    amount: 50_000,
  });
});

test('a code means that nothing was paid, whatever else is there', () => {
  expect(read('code=PAY_PROCESS_CANCELED&message=x&orderId=ORD_1')).toEqual({ kind: 'aborted' });
  expect(read('orderId=ORD_1&amount=1&code=FAILURE_TYPE_PG&paymentId=ORD_1')).toEqual({
    kind: 'aborted',
  });
  expect(read('')).toEqual({ kind: 'aborted' });
});

test('an address without a key is looked up', () => {
  expect(read('orderId=ORD_1')).toEqual({ kind: 'known', orderId: 'ORD_1' });
});
