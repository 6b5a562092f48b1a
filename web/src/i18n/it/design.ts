import type { Messages } from '../en';

export const design: Messages['design'] = {
  lead: 'Ogni componente in ogni stato.',
  buttons: 'Azioni',
  fields: 'Campi',
  chips: 'Etichette',
  states: 'In arrivo, vuoto, rifiutato',
  table: 'Tabella',
  facts: 'Fatti e messaggi',
  primary: 'Prenota',
  plain: 'Modifica',
  quiet: 'Discreto',
  danger: 'Rimuovi',
  link: 'Un link',
  off: 'Non ora',
  small: 'Piccolo',
  menu: 'Menu',
  choice: 'Vista',
  tick: 'Solo ciò che è libero',
  toast: 'Un messaggio con annulla',
  toastBad: 'Un rifiuto',
  dialog: 'Un dialogo',
};
