import { randomUUID } from 'node:crypto'

/** The processor's request to approve a purchase at a shop. @param card the processor's token. */
export function askForApproval(card: string, cents: number, more: Record<string, unknown> = {}) {
  return {
    event_type: 'card_authorization.approval_request',
    token: randomUUID(),
    status: 'AUTHORIZATION',
    amount: cents,
    card: { token: card },
    merchant: { acceptor_id: 'SHOP', descriptor: 'Corner Shop', mcc: '5411', country: 'USA' },
    pos: { entry_mode: { pan: 'ECOMMERCE' } },
    ...more,
  }
}
