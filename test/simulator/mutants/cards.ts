/** Defects of cards and deposits: events that count twice, holds that stay, money that is taken twice. */
import type { Mutant } from './mutant.ts'

const apply = 'src/storage/sql/functions/cards/card_apply.sql'

export const cardMutants: readonly Mutant[] = [
  {
    name: 'reversal-keeps-hold',
    attack: 'A reversal ends the authorization, and its money stays held forever.',
    functions: [
      { file: apply, text: "elsif p_kind in ('reversal', 'close') then", by: "elsif p_kind = 'never' then" },
    ],
  },
  {
    name: 'card-event-twice',
    attack: 'A webhook that is delivered again takes the money again.',
    functions: [
      {
        file: apply,
        text: "if not found or a.status = 'declined' and p_kind in ('reversal', 'close') then",
        by: "if a.status = 'declined' and p_kind in ('reversal', 'close') then",
      },
    ],
  },
  {
    name: 'clearing-taken-twice',
    attack: 'A cleared purchase takes what it held, and the same again from what is available.',
    functions: [
      {
        file: apply,
        text: `      v_left := v_left - v_worth;
      if v_take > 0 and h.place = 'bank' then`,
        by: "      if v_take > 0 and h.place = 'bank' then",
      },
    ],
  },
  {
    name: 'deposit-twice',
    attack: 'A bank that tells a state twice is believed twice: the deposit is credited twice.',
    edits: [
      { file: 'src/rails/banking/apply-event.ts', text: 'if (noted === undefined) return null', by: '' },
      { file: 'src/rails/banking/apply-event.ts', text: 'if (rank <= before.rank) return null', by: '' },
      {
        file: 'src/rails/banking/deposit-reviews.ts',
        text: 'id: `deposit:',
        by: 'id: String(at.getTime()) + `deposit:',
      },
    ],
  },
  {
    name: 'deposit-amount-changes',
    attack: 'A bank that says another amount later is believed.',
    edits: [
      {
        file: 'src/rails/banking/apply-event.ts',
        text: 'if (cash !== null) requireSame(cash, before.said_units)',
        by: '',
      },
    ],
  },
  {
    name: 'forged-deposit',
    attack: 'Anybody can tell a deposit: the signature of the bank is not verified.',
    edits: [
      {
        file: 'src/providers/banking/signature.ts',
        text: "if (!keys.some((key) => verify('RSA-SHA256', digest, key, signed)))",
        by: 'if (digest.length + signed.length + Number(verify.length) < 0)',
      },
    ],
  },
  {
    name: 'forged-card-event',
    attack: 'Anybody can tell that a card has cleared: the signature of the card network is not verified.',
    edits: [
      {
        file: 'src/providers/standard-webhooks.ts',
        text: 'if (!matches.includes(true))',
        by: 'if (matches.length < 0)',
      },
    ],
  },
  {
    name: 'returned-deposit-stays',
    attack: 'A deposit that its sender takes back stays credited: the account spends money of the gateway.',
    edits: [
      {
        file: 'src/rails/banking/apply-event.ts',
        text: 'if (rank <= PROCESSED || before.units === null || before.said_units === null) return null',
        by: 'if (rank < 99 || before.units === null || before.said_units === null) return null',
      },
    ],
  },
  {
    name: 'lost-pull-given-twice',
    attack:
      'The chain loses the money that an escrow pays with: the wallet has it again, and the escrow once its debt is collected.',
    functions: [
      {
        file: 'src/storage/sql/functions/cards/card_pull_lost.sql',
        text: 'if not p_is_late and v_left >',
        by: 'if false and v_left >',
      },
      {
        file: 'src/storage/sql/functions/cards/card_pull_lost.sql',
        text: 'exit when v_left = 0;\n    -- One that',
        by: 'exit;\n    -- One that',
      },
    ],
    kinds: ['card authorization', 'clearing', 'hand-over', 'clock jump', 'reorganization', 'network split'],
  },
]
