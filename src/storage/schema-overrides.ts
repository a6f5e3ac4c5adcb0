/** The parts of the tables' types that the SQL does not state. `build-schema.ts` refuses an entry that changes nothing. */

/** Types of `table.column` in rows: closed sets of words that no constraint checks, and documents. */
export const columnTypes: Readonly<Record<string, string>> = {
  'alarm.domain': "'audit' | 'banking' | 'cards' | 'investing' | 'compliance' | 'purchases'",
  'card_authorization.about': 'JsonColumn<Record<string, Json>>',
  'card_early.message': 'JsonColumn<unknown>',
  'card_order.wanted': 'JsonColumn<unknown>',
  'card_settlement.refused_by': "'authorization' | 'transfer'",
  'card_single_use.merchant': 'JsonColumn<unknown>',
  'mcp_question.answer': 'JsonColumn<unknown>',
  'mcp_session.capabilities': 'JsonColumn<unknown>',
  'payment.answer': 'JsonColumn<Record<string, unknown>>',
  'recourse.route':
    "'cancel_authorization' | 'present_again' | 'void' | 'reclaim' | 'channel_close' | 'refund_request' | 'card_reversal' | 'card_dispute' | 'bank_recall' | 'bridge_claim' | 'none'",
  'recourse.steps': 'JsonColumn<readonly Json[]>',
  'sandbox_message.channel': "'email' | 'sms'",
  'virtual_account.instructions': 'JsonColumn<Record<string, unknown>>',
}

/** Columns that every insert states although they have a default, because the default is not right for every row. */
export const statedColumns: readonly string[] = [
  'payout.rank',
  'transfer.authorized',
  'transfer.signer',
  'wallet.origin',
  'wallet.owner',
]
