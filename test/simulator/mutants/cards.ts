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
    name: 'clearing-keeps-hold',
    attack:
      'A cleared purchase takes other money than it held: the account pays twice until its hold expires.',
    functions: [
      {
        file: apply,
        text: "where authorization_id = a.id and micros > 0 and p_kind = 'clearing' order by ordinal loop",
        by: "where authorization_id = a.id and micros > 0 and p_kind = 'never' order by ordinal loop",
      },
    ],
  },
  {
    name: 'deposit-twice',
    attack: 'A bank that tells a state twice is believed twice: the deposit is credited twice.',
    edits: [
      { file: 'src/rails/banking/apply-event.ts', text: 'if (noted === undefined) return null', by: '' },
      { file: 'src/rails/banking/apply-event.ts', text: 'if (rank <= before.rank) return null', by: '' },
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
      {
        file: 'src/rails/banking/apply-event.ts',
        text: 'if (rank <= before.rank) return null',
        by: 'if (rank < before.rank) return null',
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
]
