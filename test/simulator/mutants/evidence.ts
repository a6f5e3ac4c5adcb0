/** Defects of what the chain says: outcomes that are assumed, payments that are made again, blocks that were replaced. */
import type { Mutant } from './mutant.ts'

const resume = 'src/rails/wallets/transfers/resume-transfer.ts'
const relay = 'src/rails/wallets/relays/relay-payment.ts'

export const evidenceMutants: readonly Mutant[] = [
  {
    name: 'transfer-sent-anew',
    attack: 'A transfer whose answer was lost is another operation when it is sent again: it is paid twice.',
    edits: [
      {
        file: resume,
        text: 'await chain.submit(operation)',
        by: "await chain.submit({ ...operation, id: operation.id + 'r' })",
      },
    ],
  },
  {
    name: 'transfer-given-up-early',
    attack: 'A hold is released as soon as the chain does not show the transfer; it arrives afterwards.',
    edits: [{ file: resume, text: 'if (isOver)', by: 'if (true)' }],
  },
  {
    name: 'lost-answer-is-failure',
    attack: 'A lost answer of a submission is taken for a refusal: the money is available, and arrives.',
    edits: [
      {
        file: 'src/rails/wallets/transfers/send-transfer.ts',
        text: "'it is unknown whether the chain accepted a transfer')",
        by: "'lost')\n    return { status: 'refused', reason: 'lost', cause: 'transfer' }",
      },
    ],
  },
  {
    name: 'replaced-blocks-unnoticed',
    attack: 'A block with a settlement is replaced: it is confirmed in the books and nowhere else.',
    edits: [
      {
        file: 'src/server/jobs/watch-chain.ts',
        text: 'const isReplaced = from <= cursor.block.number || areReplaced',
        by: 'const isReplaced = false && areReplaced',
      },
    ],
  },
  {
    name: 'relay-booked-unpaid',
    attack: 'A payer uses the nonce for a payment of one unit to itself; the relay is booked as paid.',
    edits: [
      {
        file: 'src/books/evidence/payment-outcome.ts',
        text: 'return isEvidence(transaction, payment, carrier)',
        by: 'return transaction.succeeded',
      },
    ],
  },
  {
    name: 'relay-given-up-early',
    attack: 'A relay whose answer was lost is given up at once; the payment arrives and belongs to nobody.',
    edits: [{ file: relay, text: "if (outcome === 'unpaid' || isOver) {", by: 'if (true) {' }],
  },
  {
    name: 'submission-is-settlement',
    attack:
      'A transfer counts as paid once a node has taken it: one that is dropped later is booked, and arrives nowhere.',
    edits: [
      {
        file: 'src/rails/wallets/transfers/send-transfer.ts',
        text: "return { status: 'pending' }\n  }\n}",
        by: "return { status: 'confirmed', transactionHash }\n  }\n}",
      },
      {
        file: 'src/rails/wallets/transfers/send-transfer.ts',
        text: 'return await operationOutcome(chain, operation, waitMs)',
        by: "return { status: 'confirmed', transactionHash }",
      },
    ],
  },
  {
    name: 'lost-transfer-sent-anew',
    attack:
      'A transfer in a block that was replaced is another operation when it is sent again: it is paid twice.',
    edits: [
      {
        file: 'src/server/jobs/verify-settled.ts',
        text: 'await chain.submit(operation)',
        by: "await chain.submit({ ...operation, id: operation.id + 'r' })",
      },
    ],
  },
  {
    name: 'lost-sale-stays-booked',
    attack: 'A payer whose payment was in a block that was replaced keeps the money and what it bought.',
    edits: [
      {
        file: 'src/server/jobs/verify-settled.ts',
        text: 'if (await reversePayment(',
        by: 'if (false && await reversePayment(',
      },
    ],
  },
  {
    name: 'sweep-of-missing-money',
    attack:
      'The block that filled a purse is replaced while its money is swept home: the reversal takes what is left, and the sweep is begun again for ever.',
    edits: [
      {
        file: 'src/rails/buying/sweep-purse.ts',
        text: 'const lack = await findPurseLack(parts, purse)',
        by: 'const lack = 0n * (await findPurseLack(parts, purse))',
      },
      {
        file: 'src/rails/wallets/transfers/reverse-transfer.ts',
        text: 'given < units &&',
        by: 'false &&',
      },
    ],
    kinds: ['purchase', 'clock jump', 'reorganization', 'network split'],
  },
  ...[
    ['transfers', 'settle-pending', 'settlePending', ', isOnEachChain: true'],
    ['relays', 'settle-relays', 'settleRelays', ', isOnEachChain: true'],
    ['purchases', 'settle-purchases', 'settlePurchases', ', isOnEachChain: true'],
    ['settlements', 'pay-cards', 'payCards', ', isOnEachChain: true'],
  ].map(([what, job, round, rest]) => ({
    name: `nobody-finishes-${what}`,
    attack: `A crash leaves ${what} open forever, and their money held.`,
    edits: [
      {
        file: 'src/server/jobs/jobs.ts',
        text: `{ name: '${job}', everyMs: 1_000, round: ${round}${rest} }`,
        by: `{ name: '${job}', everyMs: 1_000, round: async () => (${round}, 0)${rest} }`,
      },
    ],
  })),
  {
    name: 'differences-unseen',
    attack: 'An owner empties the wallet beside the gateway, and the books go on with money that is gone.',
    edits: [
      {
        file: 'src/server/jobs/jobs.ts',
        text: 'round: stateful(createReconcile)',
        by: 'round: async () => (createReconcile, 0)',
      },
      {
        file: 'src/server/jobs/jobs.ts',
        text: 'round: stateful(createWatchChain)',
        by: 'round: async () => (createWatchChain, 0)',
      },
    ],
  },
]
