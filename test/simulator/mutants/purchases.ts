/** Defects of purchases and sales: another nonce at each attempt, payments that are given up, terms that change. */
import type { Mutant } from './mutant.ts'

export const purchaseMutants: readonly Mutant[] = [
  {
    name: 'purchase-signed-anew',
    attack: 'A purchase is signed with a fresh nonce each time: a seller that hangs up is paid twice.',
    edits: [
      {
        file: 'src/rails/buying/authorization.ts',
        text: 'return keccak256(',
        by: 'return keccak256(stringToHex(String(Math.random())))\n  keccak256(',
      },
    ],
  },
  {
    name: 'purchase-given-up-early',
    attack: 'A seller that settles late is paid although the purchase has failed in the books.',
    edits: [
      {
        file: 'src/rails/buying/pay-purchase.ts',
        text: "if (isForFree || outcome.status === 'expired' || outcome.status === 'canceled')",
        by: "if (outcome.status !== 'settled')",
      },
    ],
  },
  {
    name: 'lost-cancellation-unseen',
    attack: 'The block of a cancellation is replaced, and the seller is paid for a purchase that has failed.',
    edits: [
      {
        file: 'src/rails/buying/reverse-purchase.ts',
        text: ".where('state', 'in', ['settled', 'failed'])",
        by: ".where('state', '=', 'settled')",
      },
    ],
    kinds: ['purchase', 'clock jump', 'reorganization', 'network split'],
  },
  {
    name: 'payment-marked-failed',
    attack: 'A sale whose settlement was lost is taken for refused: the payer has paid and gets nothing.',
    edits: [
      {
        file: 'src/rails/selling/x402/payment-deduplication.ts',
        text: 'if (isRemote && transaction === null) return false',
        by: 'return false',
      },
      {
        file: 'src/rails/selling/x402/settlement-attempt.ts',
        text: 'if (attempt.isUnknown || isOpen)',
        by: 'if (isOpen && false)',
      },
    ],
  },
  {
    name: 'price-above-maximum',
    attack: 'A seller asks for more than the buyer accepts, and is paid.',
    edits: [{ file: 'src/rails/buying/plan-purchase.ts', text: 'offer.units > maxUnits', by: 'false' }],
  },
  {
    name: 'metered-price-as-said',
    attack:
      'A seller says that it took less than it did, or more, and is believed: the books and the chain part.',
    edits: [
      {
        file: 'src/rails/buying/pay-purchase.ts',
        text: ': awaitOutcome(parts, purchase, findTransactionHint(answer)),',
        by: ": purchase.scheme === 'exact' ? awaitOutcome(parts, purchase, findTransactionHint(answer)) : settlePurchase(parts, purchase, { transactionHash: '0x00', units: readSaid(answer, purchase.units) }),",
      },
      {
        file: 'src/rails/buying/pay-purchase.ts',
        text: 'const freeReceipt =',
        by: "const readSaid = (answer, most) => { const said = BigInt(JSON.parse(Buffer.from(headerValues(answer, 'payment-response')[0] ?? 'e30=', 'base64').toString()).amount ?? most); return said > most || said === 0n ? most : said }\nconst freeReceipt =",
      },
      // Another guard books what the chain shows afterwards.
      {
        file: 'src/rails/buying/reverse-purchase.ts',
        text: 'outcome.units === chargedUnits(purchase)',
        by: 'chargedUnits(purchase) > 0n',
      },
    ],
    kinds: ['metered purchase', 'crash', 'clock jump'],
  },
  {
    name: 'metered-rest-stays-held',
    attack: 'A purchase that cost less than was reserved keeps the rest held forever.',
    functions: [
      {
        file: 'src/storage/sql/functions/buying/purchase_settle.sql',
        text: "perform spend_resolve(p.decision_id, 'released', null, p_at);",
        by: 'null;',
      },
    ],
    kinds: ['metered purchase', 'crash', 'clock jump'],
  },
  {
    name: 'metered-waiver-believed',
    attack:
      'A seller says that it takes nothing and settles later: the purchase has failed in the books and is paid.',
    edits: [
      {
        file: 'src/rails/buying/pay-purchase.ts',
        text: '? cancelPurchase(parts, purchase)',
        by: "? failPurchase(parts, purchase, { from: 'signed', code: 'seller_failed', failure: 'free' })",
      },
      {
        file: 'src/rails/buying/reverse-purchase.ts',
        text: ".where('state', 'in', ['settled', 'failed'])",
        by: ".where('state', '=', 'settled')",
      },
    ],
    kinds: ['metered purchase', 'crash', 'clock jump'],
  },
  {
    name: 'channel-sale-counts-as-paid',
    attack:
      'What a voucher owes is booked as if it had arrived: a payer that leaves its channel makes the books wrong.',
    functions: [
      {
        file: 'src/storage/sql/functions/selling/payment_settle.sql',
        text: "case v.scheme when 'batch-settlement' then 'receivable:channels' else 'external:' || v.chain end",
        by: "'external:' || v.chain",
      },
    ],
    kinds: ['channel sale'],
  },
  {
    name: 'refused-voucher-worthless',
    attack:
      'A seller refuses a voucher and claims it later: its purchase has failed in the books, and is paid.',
    edits: [
      {
        file: 'src/rails/buying/channels/pay-by-voucher.ts',
        text: 'await noteRefusal(database, { id, code: refusal.code, failure: refusal.failure, at: clock() })',
        by: "await failPurchase(parts, purchase, { from: 'signed', code: 'seller_failed', failure: 'refused' })",
      },
    ],
    kinds: ['channel purchase'],
  },
  {
    name: 'unclaimed-stays-paid',
    attack: 'What a seller never claimed comes back to the address, and is gone from the books.',
    functions: [
      {
        file: 'src/storage/sql/functions/buying/channel_end.sql',
        text: 'elsif c.booked > p_claimed then',
        by: 'elsif false then',
      },
    ],
    kinds: ['channel purchase'],
  },
  {
    name: 'lost-answer-signed-higher',
    attack: 'A voucher whose answer was lost is followed by a higher one, and the call is paid twice.',
    functions: [
      {
        file: 'src/storage/sql/functions/buying/channel_claim.sql',
        text: 'cumulative := c.booked + p.units;',
        by: 'cumulative := greatest(c.booked, c.signed) + p.units;',
      },
      {
        file: 'src/storage/sql/functions/buying/channel_take.sql',
        text: 'c.booked + p_units <> p_cumulative',
        by: 'c.booked + p_units > p_cumulative',
      },
    ],
    edits: [
      {
        file: 'src/rails/buying/channels/pay-by-voucher.ts',
        text: 'else if (attempts < ATTEMPTS) await timers.sleep(refusal.pauseMs ?? PAUSE_MS)',
        by: 'else voucher = null',
      },
    ],
    kinds: ['channel purchase'],
  },
  {
    name: 'refund-of-strangers',
    attack: 'Money that anybody sends counts as a refund: an agent fills its budget again with its own.',
    edits: [
      {
        file: 'src/rails/buying/find-returns.ts',
        text: 'log.from.toLowerCase() === payee.toLowerCase() &&',
        by: '',
      },
    ],
    kinds: ['recourse'],
  },
]
