/** A transfer by a key, as one request that may be repeated, interrupted or lost. */

export function postTransfer(
  origin: string,
  key: string,
  { amount, idempotencyKey }: { amount: string; idempotencyKey: string },
): Promise<Response> {
  return fetch(`${origin}/api/wallets/transfer`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${key}`,
      'idempotency-key': idempotencyKey,
    },
    body: JSON.stringify({
      destination: '0x000000000000000000000000000000000000dEaD',
      amount,
      signature: 'sandbox',
    }),
  })
}
