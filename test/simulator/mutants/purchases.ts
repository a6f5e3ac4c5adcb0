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
        text: "if (outcome.status === 'expired' || outcome.status === 'canceled')",
        by: "if (outcome.status !== 'settled')",
      },
    ],
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
    ],
  },
]
